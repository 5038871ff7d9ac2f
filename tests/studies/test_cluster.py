"""Grids on a cluster: subprocesses of this machine, and a real Slurm where it is installed."""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from menagerie.envs.core.errors import Stopped, UserError, raise_stopped
from menagerie.envs.core.records import write_record
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.cluster import tasks
from menagerie.studies.cluster.jobs import Cluster, Handle, Slurm, check_cluster, end_here, query_states, submit
from menagerie.studies.cluster.tasks import RECORD, Tasks, read_tasks, still_running
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.dispatch import run_jobs
from tests.command import GRID, QUICK, run_here, succeed, until
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


def test_an_interrupted_and_preempted_job_array_does_nothing_twice(alone, slurm):
    """Ctrl-C leaves the array in the queue, a task that gets SIGTERM goes on where it was; nothing is done twice."""
    out = alone / "runs/slurm"
    command = [*GRID, *QUICK, *CELLS, "--cluster", "slurm", "--slurm.at-once", "1", "--out", "runs/slurm"]
    launcher = Forked(command, alone)
    until(lambda: any(out.glob("cells/*/state.pt")), launcher)
    cell = next(out.glob("cells/*/state.pt")).parent.name
    task = json.loads((out / "cluster/tasks.json").read_text())[cell][1]
    preempt = subprocess.Popen(["scancel", "--signal=TERM", task])  # not waited for: it tries again if all goes well
    os.kill(launcher.pid, signal.SIGINT)
    interrupted = launcher.ended()
    array = task.partition("_")[0]
    assert interrupted.returncode == 130
    # On a busy machine some have ended by now.
    message = "[12] tasks continue in Slurm: the same command waits for them again, "
    assert re.search(rf"{message}`scancel {array}` cancels them", interrupted.stdout), interrupted.stdout
    assert interrupted.stderr.startswith("interrupted: ")
    with pytest.raises(UserError, match=rf"[12] tasks of this run are still queued or running; .*`scancel {array}`"):
        run_jobs(jobs(out), Cluster(), 1, out, lambda job: None)

    second = Forked(command, alone)
    until(lambda: "PENDING" in output_of("squeue", "--noheader", "--array", f"--jobs={task}", "--format=%T"), second)
    preempt.kill()
    preempt.wait()
    output_of("scontrol", "update", f"JobId={task}", "StartTime=now")  # Slurm lets a requeued job rest for two minutes
    result = second.ended()
    assert result.returncode == 0, result.stderr
    assert outcome(out) == outcome(alone / "runs/alone")
    assert (out / "results.csv").read_bytes() == (alone / "runs/alone/results.csv").read_bytes()
    handles = json.loads((out / "cluster/tasks.json").read_text())
    assert {handle[1].partition("_")[0] for task, handle in handles.items() if task != "digest"} == {array}
    log = (out / f"cluster/{task}_0_log.out").read_text()
    assert log.count("Starting with") == 2
    assert "Requeued job" in log


def unlucky(argument, interruption):
    """Tasks that end as theirs do on a cluster."""
    kind, folder = argument
    if kind == "mistaken":
        raise UserError("the loss is nan; lower --learning-rate")
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "cancelled":
        (Path(folder) / "sleeps").touch()
        time.sleep(100)
    if kind == "interrupted":
        resource_tracker.ensure_running()  # which unblocks signals
        os.kill(os.getpid(), signal.SIGINT)
    (Path(folder) / kind).touch()


# Of an allocation in which the command runs, and of a user; each would end or change its tasks.
AROUND = {"SLURM_MEM_PER_CPU": "100", "SLURM_NTASKS": "2", "SRUN_CPUS_PER_TASK": "8", "SBATCH_NO_REQUEUE": "1"}
AROUND |= {"SQUEUE_PARTITION": "other"}


@pytest.fixture
def allocation(monkeypatch):
    """The environment of a command that runs inside an allocation."""
    for name, value in AROUND.items():
        monkeypatch.setenv(name, value)


def unlucky_tasks(cluster, folder, *kinds):
    return Tasks(
        cluster,
        folder / "cluster",
        unlucky,
        {kind: (kind, str(folder)) for kind in kinds},
        finished=lambda kind: (folder / kind).exists(),
        label=lambda kind: f"cell {kind}",
        at_once=len(kinds),
    )


def test_tasks_that_fail_are_named_and_the_others_end(tmp_path, slurm, allocation, capsys):
    """Also where the command is itself in an allocation."""
    kinds = ("mistaken", "killed", "cancelled", "lucky")
    tasks = unlucky_tasks(Cluster("slurm", Slurm(gigabytes=0.001)), tmp_path, *kinds)
    ended = []

    def report(states):
        if (tmp_path / "sleeps").exists():
            assert "Requeue=1" in output_of("scontrol", "show", "job", tasks.running["cancelled"].job)
            output_of("scancel", tasks.running["cancelled"].job)  # which sends SIGTERM too, and is final
            (tmp_path / "sleeps").unlink()

    with pytest.raises(UserError, match=r"3 of 4 tasks failed: cell .*the same command tries the others again"):
        tasks.run(ended.append, report)
    assert ended == ["lucky"]
    said = capsys.readouterr().out
    log = tmp_path / "cluster"
    assert f"cell mistaken: the loss is nan; lower --learning-rate; its log: {log}" in said
    assert f"cell cancelled: cancelled; its log: {log}" in said
    assert re.search(rf"cell killed: srun: error: .*: Killed; its log: {log}", said)
    assert not still_running(tmp_path / "cluster")
    assert AROUND.items() <= os.environ.items()


def test_tasks_that_are_too_many_for_one_array_are_several(tmp_path, slurm):
    """The test's Slurm takes arrays of four."""
    handles = submit(Cluster("slurm", Slurm(at_once=2, sbatch=("hold",))), tmp_path, print, range(7))
    first, second = (handles[k].job.partition("_")[0] for k in (0, 4))
    assert [handle.job for handle in handles] == [f"{first}_{k}" for k in range(4)] + [
        f"{second}_{k}" for k in range(3)
    ]
    assert {status.state for status in query_states(handles).values()} == {"PENDING"}
    listed = output_of("squeue", "--noheader", "--format=%i", f"--jobs={first},{second}")
    output_of("scancel", first, second)
    assert set(listed.split()) == {f"{first}_[0-3%1]", f"{second}_[0-2%1]"}, "as many at once as one array would have"


def test_a_subprocess_that_fails_is_named_and_one_that_gets_ctrl_c_goes_on(tmp_path):
    """A terminal sends Ctrl-C to subprocesses too; the command ends them so that they save their states."""
    with pytest.raises(UserError, match=r"1 of 1 tasks failed: cell mistaken: the loss is nan; .*its log: .*log\.out"):
        unlucky_tasks(Cluster("local"), tmp_path, "mistaken").run(print, lambda states: None)
    unlucky_tasks(Cluster("local"), tmp_path, "interrupted").run(print, lambda states: None)


def test_ctrl_c_ends_subprocesses(tmp_path):
    def report(states):
        if (tmp_path / "sleeps").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unlucky_tasks(Cluster("local"), tmp_path, "cancelled").run(print, report)
    (log,) = tmp_path.glob("cluster/*log.out")
    end = time.monotonic() + 20
    # Signalled to end, it has nobody to start it again.
    while still_running(tmp_path / "cluster") or "Requeued" not in log.read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
    assert log.read_text().count("Starting with") == 1


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
    """Also by the next command, which needn't name it; squeue says which cluster answers."""
    calls = tmp_path / "calls"
    add_program(squeue, "srun", "")
    add_program(squeue, "scontrol", f"echo scontrol $* >> '{calls}'")
    add_program(squeue, "sbatch", f"grep SBATCH.*clusters $1 >> '{calls}'; echo Submitted batch job 77 on cluster beta")
    if where != "option":
        monkeypatch.setenv(where, "beta")
    slurm = Slurm(sbatch=("clusters=beta",) if where == "option" else ())
    tasks = unlucky_tasks(Cluster("slurm", slurm), tmp_path, "lucky")
    squeue.write_text("CLUSTER: beta\n77|RUNNING|None\n")

    def report(line):
        assert line == "1 running"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tasks.run(print, report)
    assert "`scancel --clusters=beta 77` cancels them" in capsys.readouterr().out
    monkeypatch.delenv(where, raising=False)
    (log := tmp_path / "cluster/77_0_log.out").touch()
    assert still_running(log.parent) == {"lucky": Handle("slurm", "77;beta", str(log))}
    asked = "squeue --clusters=beta --noheader --array --states=all --format=%i|%T|%r --jobs=77"
    said = ["scontrol --clusters=beta show config", "#SBATCH --clusters=beta", asked, asked]
    assert calls.read_text().splitlines() == said
    squeue.write_text("something else\n")
    assert query_states(read_tasks(log.parent).values()) == {"77;beta": ("UNKNOWN", "squeue printed something else")}


def test_no_array_is_left_if_slurm_refuses_a_further_one(tmp_path, squeue):
    calls = tmp_path / "calls"
    add_program(squeue, "srun", "")
    add_program(squeue, "scontrol", "echo 'MaxArraySize            = 1'")
    add_program(squeue, "sbatch", f"[ -e '{calls}' ] && echo 'error: full' >&2 && exit 1; echo job 78 | tee '{calls}'")
    add_program(squeue, "scancel", f"echo scancel $* >> '{calls}'")
    with pytest.raises(UserError, match="Slurm refuses the tasks: full"):
        submit(Cluster("slurm", Slurm(sbatch=("cluster=beta",))), tmp_path / "cluster", print, [1, 2])
    assert calls.read_text() == "job 78\nscancel --clusters=beta 78\n"


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL"])
def test_a_task_that_slurm_will_queue_again_has_not_failed(state, tmp_path, squeue):
    tasks = unlucky_tasks(Cluster("slurm"), tmp_path, "lucky")
    tasks.running = {"lucky": Handle("slurm", "7_0", str(tmp_path / "cluster/7_0_0_log.out"))}

    def look(answer, seconds):
        """What Slurm says, and how long it has said so if it is an end."""
        squeue.write_text(f"7_0|{answer}|None\n")
        tasks.look()
        tasks.ended = {name: since - seconds for name, since in tasks.ended.items()}
        tasks.look()
        return list(tasks.running), list(tasks.failed)

    assert look("RUNNING", 0) == (["lucky"], [])
    assert look(state, 20) == (["lucky"], [])
    assert look("PENDING", 0) == (["lucky"], [])
    assert look(state, 20) == (["lucky"], []), "the time counts from its last end"
    assert look(state, 200) == ([], ["lucky"])


@pytest.mark.parametrize("log", ["", "1_0_log.out", "/", "/1_0_log.out", "../1_0_log.out"])
def test_a_strangers_record_of_tasks_ends_nothing(log, tmp_path):
    """It names a process of ours whose command line has all of these folders in it."""
    bystander = subprocess.Popen(["sh", "-c", "sleep 60", "./.."])
    try:
        write_record(tmp_path / RECORD, {"a": ("local", str(bystander.pid), log)})
        running = still_running(tmp_path)
        end_here([*running.values(), *read_tasks(tmp_path).values()])
        assert not running
        with pytest.raises(subprocess.TimeoutExpired):
            bystander.wait(0.1)
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("job", ["", "--user=me", "7 8", "-1", "../1", "7_[0-3]"])
def test_only_numbers_of_jobs_are_taken(job, tmp_path):
    write_record(tmp_path / RECORD, {"a": ("slurm", job, str(tmp_path / "log.out"))})
    with pytest.raises(UserError, match=r"tasks\.json is damaged"):
        still_running(tmp_path)


SBATCH = """echo sbatch >> '{folder}/calls'
kill -{signal} $PPID $$
echo Submitted batch job 77
"""


@pytest.fixture
def stops():
    """The handlers of a command."""
    before = signal.signal(signal.SIGTERM, raise_stopped)
    yield {"INT": KeyboardInterrupt, "TERM": Stopped}
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("name", ["INT", "TERM"])
@pytest.mark.parametrize("moment", ["sbatch", "record"])
def test_a_stop_around_a_submission_leaves_no_task_unrecorded(name, moment, stops, tmp_path, squeue, monkeypatch):
    """It comes to the command and to sbatch, as from a terminal, or just before the record is written."""
    folder = tmp_path / "cluster"
    add_program(squeue, "sbatch", SBATCH.format(folder=tmp_path, signal=name if moment == "sbatch" else 0))
    add_program(squeue, "srun", "")

    def late(*arguments, **options):
        os.kill(os.getpid(), getattr(signal, f"SIG{name}"))
        write_record(*arguments, **options)

    if moment == "record":
        monkeypatch.setattr(tasks, "write_record", late)
    with pytest.raises(stops[name]):
        unlucky_tasks(Cluster("slurm"), tmp_path, "lucky", "mistaken").run(
            print, lambda states: pytest.fail("it goes on")
        )
    assert {name: handle.job for name, handle in read_tasks(folder).items()} == {"lucky": "77_0", "mistaken": "77_1"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is raise_stopped
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    squeue.write_text("77_0|PENDING|None\n77_1|PENDING|None\n")
    again = unlucky_tasks(Cluster("slurm"), tmp_path, "lucky", "mistaken")
    with pytest.raises(KeyboardInterrupt):
        again.run(print, lambda states: os.kill(os.getpid(), signal.SIGINT))
    assert set(again.running) == {"lucky", "mistaken"}
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call for call in calls if call.startswith("sbatch")] == ["sbatch"], "they are submitted once"


@pytest.mark.parametrize("name", ["run%j", "100%", "a%%b", "a\\b", "a\nb"])
def test_a_folder_whose_name_slurm_would_change_is_refused(name, tmp_path):
    with pytest.raises(UserError, match="--cluster slurm can't write to") as caught:
        submit(Cluster("slurm"), tmp_path / name, print, [1])
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
