"""Grids on a cluster: subprocesses of this machine, and a real Slurm where it is installed."""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from envs.common.errors import UserError
from envs.worlds import load_world
from generators.cluster.options import Cluster, Slurm, check_cluster
from generators.cluster.tasks import Tasks, still_running
from generators.storage.image_store import ImageStore
from studies.binding_grid import PRESETS
from studies.grids.cells import cells
from studies.runs.cell import Job
from studies.runs.dispatch import run_cells
from tests.slurm import output_of
from tests.studies.command import GRID, QUICK, ended, run_here, started, until

CELLS = ["--models", "clip", "--pairs", "0.4", "0.8", "--hard-negatives", "0", "1", "--steps", "250"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with a 2 x 2 grid of an undisturbed command in `runs/alone`."""
    folder = tmp_path_factory.mktemp("cluster")
    result = run_here([*GRID, *QUICK, *CELLS, "--out", "runs/alone"], folder)
    assert result.returncode == 0, result.stderr
    return folder


def jobs(out):
    """The jobs of that grid."""
    smoke = PRESETS["smoke"]
    recipe = replace(smoke.recipe, steps=250, batch=8)
    places = {"models": ("clip",), "pairs": (0.4, 0.8), "hard_negatives": (0.0, 1.0)}
    grid = replace(smoke, **places, views=1, recipe=recipe)
    identity = ImageStore(out / "store", load_world("tiny"), 32).identity
    return [Job(cell, out / "split.h5", out) for cell in cells(grid, identity)]


def outcome(out):
    """All of a run's cells that must not depend on where they ran, by id."""
    found = {}
    for line in (out / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        folder = out / "cells" / cell["id"]
        files = [(folder / name).read_bytes() for name in ("predictions.csv", "checkpoint/model.safetensors")]
        names = {"predictions.csv", "checkpoint", "result.json", "training.csv"}
        assert {path.name for path in folder.iterdir()} == names
        varies = {"seconds", "provenance", "digest"}
        found[cell["id"]] = {key: value for key, value in cell.items() if key not in varies}, files
    return found


def test_subprocesses_make_the_same_cells(alone):
    few = [*CELLS, "--pairs", "0.8"]
    result = run_here([*GRID, *QUICK, *few, "--cluster", "local", "--workers", "2", "--out", "runs/local"], alone)
    assert result.returncode == 0, result.stderr
    assert " 2/2 " in result.stdout
    here = outcome(alone / "runs/local")
    assert len(here) == 2
    assert here.items() <= outcome(alone / "runs/alone").items()
    assert {job.cell.id for job in jobs(alone / "runs/alone")} == outcome(alone / "runs/alone").keys()
    provenance = json.loads((alone / "runs/local/cells.jsonl").read_text().splitlines()[0])["provenance"]
    assert "binding_grid.py --preset smoke" in provenance["command"]
    assert (alone / "runs/local/report.html").exists()


def test_a_job_array_interrupted_preempted_and_waited_for_again(alone, slurm):
    """Ctrl-C leaves the array in the queue, a task that gets SIGTERM goes on where it was; nothing is done twice."""
    out = alone / "runs/slurm"
    command = [*GRID, *QUICK, *CELLS, "--cluster", "slurm", "--slurm.at-once", "2", "--out", "runs/slurm"]
    launcher = started(command, alone)
    until(lambda: any(out.glob("cells/*/state.pt")), launcher)
    cell = next(out.glob("cells/*/state.pt")).parent.name
    task = json.loads((out / "cluster/tasks.json").read_text())[cell][1]
    preempt = subprocess.Popen(["scancel", "--signal=TERM", task])  # not waited for: it tries again if all goes well
    launcher.send_signal(signal.SIGINT)
    interrupted = ended(launcher)
    array = task.partition("_")[0]
    assert interrupted.returncode == 130
    # On a busy machine some have ended by now.
    told_of = "[1-4] tasks stay with Slurm: the same command waits for them again, "
    assert re.search(rf"{told_of}`scancel {array}` ends them", interrupted.stdout), interrupted.stdout
    assert interrupted.stderr.startswith("interrupted: ")
    with pytest.raises(UserError, match=rf"[1-4] tasks of this run are still queued or running; .*`scancel {array}`"):
        run_cells(jobs(out), Cluster(), 1, out, lambda job: None)

    second = started(command, alone)
    until(lambda: "PENDING" in output_of("squeue", "--noheader", "--array", f"--jobs={task}", "--format=%T"), second)
    preempt.kill()
    preempt.wait()
    output_of("scontrol", "update", f"JobId={task}", "StartTime=now")  # Slurm lets a requeued job rest for two minutes
    result = ended(second)
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
    (Path(folder) / kind).touch()


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


def test_tasks_that_fail_are_named_and_the_others_end(tmp_path, slurm, capsys):
    tasks = unlucky_tasks(Cluster("slurm"), tmp_path, "mistaken", "killed", "cancelled", "lucky")
    ended = []

    def report(states):
        if (tmp_path / "sleeps").exists():
            output_of("scancel", tasks.running["cancelled"].job)  # which sends SIGTERM too, and is final
            (tmp_path / "sleeps").unlink()

    with pytest.raises(UserError, match=r"3 of 4 tasks failed: cell .*the same command tries the others again"):
        tasks.run(ended.append, report)
    assert ended == ["lucky"]
    said = capsys.readouterr().out
    log = tmp_path / "cluster"
    assert f"cell mistaken: the loss is nan; lower --learning-rate; its log: {log}" in said
    assert f"cell cancelled: cancelled; its log: {log}" in said
    assert f"cell killed: it ended without a result (failed); its log: {log}" in said
    assert not still_running(tmp_path / "cluster")


def test_a_subprocess_that_fails_is_named(tmp_path):
    with pytest.raises(UserError, match=r"1 of 1 tasks failed: cell mistaken: the loss is nan; .*its log: .*log\.out"):
        unlucky_tasks(Cluster("local"), tmp_path, "mistaken").run(print, lambda states: None)


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


def test_what_slurm_would_refuse_is_told_before_anything_is_made(tmp_path, slurm):
    result = run_here([*GRID, *QUICK, "--cluster", "slurm", "--slurm.partition", "nope"], tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: Slurm refuses the tasks: Invalid partition name specified; ")
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="Slurm refuses the tasks: Requested node configuration is not available"):
        check_cluster(Cluster("slurm", Slurm(gigabytes=1e6)))
    with pytest.raises(UserError, match="minutes must be at least 5"):
        check_cluster(Cluster("slurm", Slurm(minutes=1)))


def test_no_slurm_here(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="--cluster slurm: no sbatch here"):
        check_cluster(Cluster("slurm"))
    check_cluster(Cluster("local"))
