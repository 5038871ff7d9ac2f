"""Grids on a cluster: subprocesses of this machine, and a real Slurm where it is installed."""

import getpass
import json
import os
import re
import signal
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.cell import AnyJob, Job
from menagerie.studies.runs.executor import run_jobs
from menagerie.studies.runs.runners import ClusterTasks
from menagerie.studies.runs.slurm import Cluster, Slurm, Task, check_cluster, end_tasks, queue_watcher, submit
from tests.command import GRID, QUICK, WAIT_SECONDS, run_here, succeed, until
from tests.forked import Forked
from tests.grid_cells import cell_output, cells
from tests.slurm import output_of

CELLS = ["--models", "clip", "--pairs", "0.8", "--hard-negatives", "0", "1", "--steps", "250"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with a grid of two cells of an undisturbed command in `runs/alone`."""
    folder = tmp_path_factory.mktemp("cluster")
    succeed([*GRID, *QUICK, *CELLS, "--out", "runs/alone"], folder, page=False)
    return folder


def jobs(out):
    """The jobs of that grid."""
    smoke = PRESETS["smoke"]
    recipe = replace(smoke.recipe, steps=250, batch=8)
    places = {"models": ("clip",), "pairs": (0.8,), "hard_negatives": (0.0, 1.0)}
    grid = replace(smoke, **places, views=1, recipe=recipe)
    identity = SplitFolder(out / "store", load_world("tiny"), 32).identity
    return [Job(cell, out / "split.h5", out) for cell in cells(grid, identity)]


def outcome(out):
    """All of a run's cells that must not depend on where they ran, by id."""
    found, names = {}, {"predictions.csv", "checkpoint", "result.json", "training.csv"}
    for line in (out / "cells.jsonl").read_text().splitlines():
        folder = out / "cells" / json.loads(line)["id"]
        assert {path.name for path in folder.iterdir()} == names
        found[folder.name] = cell_output(folder)
    return found


def test_subprocesses_make_the_same_bytes_as_one_command(alone):
    few = [*CELLS, "--hard-negatives", "1"]
    result = succeed(
        [*GRID, *QUICK, *few, "--cluster", "local", "--workers", "2", "--out", "runs/local"], alone, page=False
    )
    assert " 1/1 " in result.stdout
    here = outcome(alone / "runs/local")
    assert len(here) == 1
    assert here.items() <= outcome(alone / "runs/alone").items()
    assert {job.cell.id for job in jobs(alone / "runs/alone")} == outcome(alone / "runs/alone").keys()
    provenance = json.loads((alone / "runs/local/cells.jsonl").read_text().splitlines()[0])["provenance"]
    assert "binding_grid.py --preset smoke" in provenance["command"]


def come(reached):
    """Wait until something is reached."""
    end = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_an_interrupted_and_preempted_task_does_nothing_twice(alone, slurm):
    """Ctrl-C leaves a task in the queue; the next command leaves out its cell, and takes it when nobody runs it. A task
    that gets SIGTERM goes on where it was."""
    out = alone / "runs/slurm"
    command = [*GRID, *QUICK, *CELLS, "--cluster", "slurm", "--slurm.at-once", "1", "--out", "runs/slurm"]
    launcher = Forked(command, alone)
    until(lambda: any(out.glob("cells/*/state.pt")), launcher)
    task = output_of("squeue", "--noheader", "--format=%i").strip()
    os.kill(launcher.pid, signal.SIGINT)
    interrupted = launcher.ended()
    assert interrupted.returncode == 130
    assert f"1 tasks continue in Slurm; `scancel {task}` cancels them" in interrupted.stdout
    assert interrupted.stderr.startswith("interrupted: ")
    output_of("scancel", "--signal=STOP", task)
    second = run_here([*GRID, *QUICK, *CELLS, "--out", "runs/slurm"], alone, page=False)
    output_of("scancel", "--signal=CONT", task)
    assert second.returncode == 1
    assert re.match(r"error: another command runs 1 of the runs \(clip .*\); all others are finished; ", second.stderr)
    assert f"repeat python {GRID[1]} --preset smoke" in second.stderr
    assert len(list(out.glob("cells/*/result.json"))) == 1

    output_of("scancel", "--signal=TERM", task)
    come(lambda: "PENDING" in output_of("squeue", "--noheader", f"--jobs={task}", "--format=%T"))
    (log,) = out.glob(f"cluster/*/{task}_0_log.out")
    output_of("scontrol", "update", f"JobId={task}", "StartTime=now")  # Slurm lets a requeued job rest for two minutes
    come(lambda: "Exiting after successful completion" in log.read_text())
    assert log.read_text().count("Starting with") == 2
    assert "Requeued job" in log.read_text()
    succeed(command, alone, page=False)
    assert outcome(out) == outcome(alone / "runs/alone")
    assert (out / "results.csv").read_bytes() == (alone / "runs/alone/results.csv").read_bytes()


@dataclass(frozen=True)
class Unlucky(AnyJob):
    """Jobs that end as they do on a cluster."""

    id: str
    out: Path

    @property
    def name(self):
        return f"cell {self.id}"

    @property
    def folder(self):
        return self.out / "cells" / self.id

    @property
    def ended(self):
        return self.folder.exists()

    def run(self, report, release):
        if self.id == "mistaken":
            raise UserError("the loss is nan; lower --learning-rate")
        if self.id == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.id == "cancelled":
            (self.out / "sleeps").touch()
            time.sleep(100)
        if self.id == "interrupted":
            resource_tracker.ensure_running()  # which unblocks signals
            os.kill(os.getpid(), signal.SIGINT)
        self.folder.mkdir(parents=True)


def run_unlucky(cluster, folder, *kinds):
    """Run such jobs; returns those that ended."""
    ended = []
    run_jobs([Unlucky(kind, folder) for kind in kinds], cluster, len(kinds), folder, lambda job: ended.append(job.id))
    return ended


# Of an allocation in which the command runs, and of a user; each would end or change its tasks.
AROUND = {"SLURM_MEM_PER_CPU": "100", "SLURM_NTASKS": "2", "SRUN_CPUS_PER_TASK": "8", "SBATCH_NO_REQUEUE": "1"}
AROUND |= {"SQUEUE_PARTITION": "other"}
QUEUE = ("squeue", "--noheader", "--array", "--format=%i")


@pytest.fixture
def allocation(monkeypatch):
    """The environment of a command that runs inside an allocation."""
    for name, value in AROUND.items():
        monkeypatch.setenv(name, value)


def test_tasks_that_fail_are_named_and_the_others_end(tmp_path, slurm, allocation, capsys):
    """Also where the command is itself in an allocation."""
    kinds = ("mistaken", "killed", "cancelled", "lucky")

    def cancel():
        come((tmp_path / "sleeps").exists)
        (task,) = (line for line in output_of(*QUEUE, "--partition=tests").split() if "_2" in line)
        assert "Requeue=1" in output_of("scontrol", "show", "job", task)
        output_of("scancel", task)  # which sends SIGTERM too, and is final

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(UserError, match=r"cell .*; 2 more failed"):
        run_unlucky(Cluster("slurm", Slurm(gigabytes=0.001)), tmp_path, *kinds)
    assert Unlucky("lucky", tmp_path).ended
    said = capsys.readouterr().out
    log = f"its log: {tmp_path / 'cluster'}"
    assert f"cell mistaken: the loss is nan; lower --learning-rate (failed); {log}" in said
    assert re.search(rf"cell cancelled: .* \(cancelled\); {log}", said)
    assert re.search(rf"cell killed: srun: error: .*: Killed \(failed\); {log}", said)
    assert AROUND.items() <= os.environ.items()


def test_tasks_that_are_too_many_for_one_array_are_refused_with_a_way_out(tmp_path, slurm):
    """The test's Slurm takes arrays of four."""
    with pytest.raises(UserError, match=r"Slurm refuses the tasks: .*array.*; lower --slurm.at-once"):
        run_unlucky(Cluster("slurm"), tmp_path, *map(str, range(5)))
    assert sorted(run_unlucky(Cluster("slurm", Slurm(at_once=4)), tmp_path, *"abcde")) == [*"abcde"]


def test_a_subprocess_that_fails_is_named_and_one_that_gets_ctrl_c_goes_on(tmp_path):
    """A terminal sends Ctrl-C to subprocesses too; the command ends them so that they save their states."""
    with pytest.raises(UserError, match=r"cell mistaken: the loss is nan; .*its log: .*log\.out"):
        run_unlucky(Cluster("local"), tmp_path, "mistaken")
    assert run_unlucky(Cluster("local"), tmp_path, "interrupted") == ["interrupted"]


def test_ctrl_c_ends_subprocesses(tmp_path):
    def press():
        come((tmp_path / "sleeps").exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_unlucky(Cluster("local"), tmp_path, "cancelled")
    (log,) = tmp_path.glob("cluster/*/*log.out")
    assert "stopped: what was saved is kept" in log.read_text()
    assert log.read_text().count("Starting with") == 1, "nobody starts it again"


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """A squeue that prints what is written to the file that this gives: a state can't be held in a real Slurm."""
    answer = tmp_path / "answer"
    (tmp_path / "bin").mkdir()
    add_program(answer, "squeue", f"echo squeue $* $SQUEUE_PARTITION >> '{tmp_path}/calls'; cat '{answer}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    return answer


def add_program(answer, name, text):
    """Put a program that stands for Slurm's beside that squeue."""
    (program := answer.parent / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("where", ["option", "SBATCH_CLUSTERS", "SLURM_CLUSTERS"])
def test_tasks_on_another_cluster_are_asked_for_there(where, tmp_path, squeue, allocation, monkeypatch, capsys):
    """squeue says which cluster answers."""
    calls = tmp_path / "calls"
    add_program(squeue, "srun", "")
    add_program(squeue, "sbatch", f"grep SBATCH.*clusters $1 >> '{calls}'; echo Submitted batch job 77 on cluster beta")
    if where != "option":
        monkeypatch.setenv(where, "beta")
    cluster = Cluster("slurm", Slurm(sbatch=("clusters=beta",) if where == "option" else ()))
    squeue.write_text("CLUSTER: beta\n77|RUNNING\n")
    jobs = submit(Task(print, tmp_path / "lock"), [1], cluster, tmp_path / "tasks")
    assert [job.state for job in jobs] == ["RUNNING"]
    end_tasks(jobs, cluster)
    assert "1 tasks continue in Slurm; `scancel --clusters=beta 77` cancels them" in capsys.readouterr().out
    asked = f"squeue --clusters=beta --noheader --array --states=all --format=%i|%T --user={getpass.getuser()}"
    assert calls.read_text().splitlines() == ["#SBATCH --clusters=beta", asked]


def test_states_are_read_from_the_queue(tmp_path):
    """Slurm may queue a task again that was preempted or whose machine failed; one that it has forgotten has ended."""
    watcher = queue_watcher("--clusters=elsewhere")
    for number in range(1, 6):
        watcher.register_job(f"7_{number}")
    lines = "something else\n7_1|RUNNING\n7_2|NODE_FAIL\n7_3|COMPLETED\n7_4|PENDING\n"
    states = {job: info["State"] for job, info in watcher.read_info(lines).items()}
    assert states == {"7_1": "RUNNING", "7_2": "RUNNING", "7_3": "COMPLETED", "7_4": "PENDING", "7_5": "GONE"}


@pytest.mark.parametrize("name", ["run%j", "100%", "a%%b", "a\\b", "a\nb"])
def test_a_folder_whose_name_slurm_would_change_is_refused(name, tmp_path):
    with pytest.raises(UserError, match="--cluster slurm can't write to") as caught:
        ClusterTasks(Cluster("slurm"), tmp_path / name, 1)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_what_slurm_refuses_is_said_before_anything_is_made(tmp_path, slurm):
    result = run_here([*GRID, *QUICK, "--cluster", "slurm", "--slurm.partition", "nope"], tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: Slurm refuses the tasks: Invalid partition name specified; ")
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="Slurm refuses the tasks: Requested node configuration is not available"):
        check_cluster(Cluster("slurm", Slurm(gigabytes=1e6)), tmp_path)
    with pytest.raises(UserError, match="minutes must be at least 5"):
        check_cluster(Cluster("slurm", Slurm(minutes=1)), tmp_path)


def test_a_machine_without_slurm_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="--cluster slurm: no sbatch here"):
        check_cluster(Cluster("slurm"), tmp_path)
    check_cluster(Cluster("local"), tmp_path)
