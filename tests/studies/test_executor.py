"""Jobs of any kind, run in workers and as tasks: what follows from one, groups, and ends without a result."""

import multiprocessing
import os
import signal
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from menagerie.envs.core.errors import Incomplete, UserError
from menagerie.envs.core.processes import end_processes
from menagerie.studies.runs.cell import AnyJob
from menagerie.studies.runs.executor import run_jobs
from menagerie.studies.runs.runners import Workers
from menagerie.studies.runs.slurm import Cluster

HERE, ELSEWHERE = Cluster(), Cluster("local")
ENGINES = pytest.mark.parametrize("cluster", [HERE, ELSEWHERE], ids=["here", "local"])


@dataclass(frozen=True)
class Note(AnyJob):
    """Leaves the number of its process in a file."""

    id: str
    out: Path
    fate: str = ""
    group: str = ""
    needs: tuple["Note", ...] = ()

    @property
    def name(self):
        return f"note {self.id}"

    @property
    def folder(self):
        return self.out / "notes" / self.id

    @property
    def ended(self):
        return any((self.folder / name).exists() for name in ("process", "diverged"))

    @property
    def held(self):
        return (self.folder / "held").exists()

    @property
    def problem(self):
        return "the loss is nan" if (self.folder / "diverged").exists() else ""

    @property
    def process(self):
        return int((self.folder / "process").read_text())

    def run(self, report, release):
        self.folder.mkdir(parents=True, exist_ok=True)
        report(1, "")
        if self.fate == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fate == "diverged":
            (self.folder / "diverged").touch()
        if self.fate:
            raise UserError(f"{self.fate}, sadly")
        release()
        (self.folder / "process").write_text(str(os.getpid()))


def run(jobs, cluster, folder, on_finished=lambda job: None, workers=2):
    """Run jobs; returns the ids of those that ended, in order."""
    ended = []

    def end(job):
        ended.append(job.id)
        return on_finished(job)

    run_jobs(jobs, cluster, workers, folder, end)
    return ended


@ENGINES
def test_jobs_that_follow_from_a_finished_one_run_too(cluster, tmp_path):
    """Each once, also where it is named again while it runs."""
    names = {"a": "cd", "c": "de", "e": "ab"}

    def more(job):
        return [Note(name, tmp_path) for name in names.get(job.id, "")]

    ended = run([Note("a", tmp_path), Note("b", tmp_path), Note("a", tmp_path)], cluster, tmp_path, more)
    assert sorted(ended) == ["a", "b", "c", "d", "e"]
    assert ended.index("a") < ended.index("c") < ended.index("e")
    assert all(Note(name, tmp_path).ended for name in "abcde")


@ENGINES
def test_a_job_that_ended_before_is_not_run_again(cluster, tmp_path):
    done, follows = Note("a", tmp_path), Note("b", tmp_path)
    done.folder.mkdir(parents=True)
    (done.folder / "process").write_text("7")
    assert run([done], cluster, tmp_path, lambda job: [follows] if job == done else None) == ["a", "b"]
    assert (done.process, follows.ended) == (7, True)


def test_workers_run_jobs_of_the_group_they_have_loaded_first(tmp_path, monkeypatch):
    notes = [Note(name, tmp_path, group=name[0]) for name in ("x1", "y1", "x2", "z1", "y2", "x3")]
    assert run(notes, HERE, tmp_path / "one", workers=1) == ["x1", "x2", "x3", "y1", "y2", "z1"]
    again = [replace(note, out=tmp_path / "two") for note in notes[0::2] + notes[1::2]]  # x1 x2 y2 y1 z1 x3
    started, start = [], Workers.start
    monkeypatch.setattr(Workers, "start", lambda self, jobs: [started.extend(jobs), start(self, jobs)][1])
    run(again, HERE, tmp_path / "two", workers=2)
    assert started[:2] == [again[0], again[2]], "no two begin with one group while another waits"


@ENGINES
def test_a_diverged_job_ends_no_other(cluster, tmp_path, capsys):
    notes = [Note("bad", tmp_path, "diverged"), *(Note(name, tmp_path) for name in "abc")]
    assert sorted(run(notes, cluster, tmp_path)) == ["a", "b", "bad", "c"]
    assert "no result of note bad: the loss is nan" in capsys.readouterr().out
    assert run(notes, cluster, tmp_path)[0] == "bad", "it isn't tried again"


@ENGINES
@pytest.mark.parametrize(
    ("fate", "reason"),
    [("mistaken", "mistaken, sadly"), ("killed", "its process was killed|it ended without a result")],
)
def test_a_failed_job_ends_the_command_by_its_name(cluster, fate, reason, tmp_path):
    notes = [Note("bad", tmp_path, fate), *(Note(name, tmp_path) for name in "ab")]
    with pytest.raises(UserError, match=f"note bad: ({reason})"):
        run(notes, cluster, tmp_path, workers=1)
    assert Note("b", tmp_path).ended == (cluster == ELSEWHERE), "the others of a cluster are waited for"


@ENGINES
def test_a_job_waits_for_those_that_it_needs(cluster, tmp_path):
    """They run though nobody named them, and a job runs though one of them diverged."""
    one, bad = Note("one", tmp_path), Note("bad", tmp_path, "diverged")
    two = Note("two", tmp_path, needs=(one,))
    ended = run([Note("three", tmp_path, needs=(two, bad)), one], cluster, tmp_path)
    assert sorted(ended) == ["bad", "one", "three", "two"]
    assert ended.index("one") < ended.index("two") < ended.index("three") == 3


@ENGINES
def test_jobs_that_another_command_runs_are_left_out_and_named(cluster, tmp_path):
    """With those that need them; what it has ended meanwhile counts."""
    soon, later = Note("soon", tmp_path), Note("later", tmp_path)
    for note in (soon, later):
        note.folder.mkdir(parents=True)
        (note.folder / "held").touch()
    waiting = Note("waiting", tmp_path, needs=(later,))

    def other_ends_it(job):
        (soon.folder / "process").write_text("7")

    with pytest.raises(Incomplete, match=r"another command runs 1 of the runs \(note later\), for which 1 others wait"):
        run([soon, later, waiting, Note("free", tmp_path)], cluster, tmp_path, other_ends_it)
    assert Note("free", tmp_path).ended
    assert soon.process == 7
    assert not later.ended
    assert not waiting.ended


def test_an_interrupt_as_a_worker_starts_leaves_none_behind(monkeypatch, tmp_path):
    """The command would wait for it for ever at its own end."""
    start, before = BaseProcess.start, multiprocessing.active_children()

    def interrupted(process):
        start(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(BaseProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([Note("a", tmp_path)], HERE, tmp_path)
    left = [process for process in multiprocessing.active_children() if process not in before]
    end_processes(left)
    assert not left
