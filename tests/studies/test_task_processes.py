"""A task of a cluster whose processes train together."""

import json
import os
import pickle
import signal
import sys
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.training.state import StateFile
from menagerie.studies.frame.run import Running, one_run_study
from menagerie.studies.runs.graphs import open_material
from menagerie.studies.runs.runners import resources
from menagerie.studies.runs.shared import saved_step
from menagerie.studies.runs.slurm import Cluster, Slurm, check_cluster, sbatch_options
from menagerie.studies.runs.torchrun import take_steps
from menagerie.studies.runs.train import fresh_scorer
from tests.command import until
from tests.forked import Forked
from tests.helpers.splits import make_split

TASK = """
import pickle, signal
from pathlib import Path
from menagerie.studies.runs.runners import run_task
from menagerie.studies.runs.slurm import SIGNALS, Interruption

if __name__ == "__main__":
    interruption = Interruption()
    for number in SIGNALS:
        signal.signal(number, interruption.request)
    run_task(pickle.loads(Path("job").read_bytes()), interruption, processes=2)
"""
STEPS = 130
TWO = Slurm(processes=2)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("task")
    split = make_split(folder, BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10), 32)
    (folder / "run").mkdir()
    study = one_run_study("clip", split, 0, {}, {"architecture": "nano", "resolution": 32, "steps": STEPS, "batch": 12})
    running = Running(study.fill_in(), folder / "run")
    (arm,) = running.arms()
    return running.job(arm)


def losses(path):
    lines = [line.split(",") for line in path.read_text().splitlines()]
    return {int(row[0]): float(row[lines[0].index("loss")]) for row in lines[1:]}


def test_an_interrupted_task_of_two_processes_goes_on_with_the_losses_of_one(job, tmp_path):
    """Slurm sends SIGUSR2 before the time limit."""
    mine = replace(job, out=tmp_path / "run")
    (tmp_path / "job").write_bytes(pickle.dumps(mine))
    (tmp_path / "task.py").write_text(TASK)
    task = Forked([sys.executable, "task.py"], tmp_path)
    until(lambda: (mine.folder / "training.csv").exists(), task)
    os.kill(task.pid, signal.SIGUSR2)
    ended = task.ended()
    assert "Stopped" in ended.stderr
    assert 0 < max(saved_step(state) for state in (tmp_path / "run").rglob("*.pt")) < STEPS
    again = Forked([sys.executable, "task.py"], tmp_path).ended()
    assert again.returncode == 0, again.stderr
    assert json.loads((mine.folder / "result.json").read_text())["provenance"]["processes"] == 2
    alone: dict[int, float] = {}
    material = open_material(job)
    scorer = fresh_scorer(job, material)
    take_steps(
        job, material, scorer, StateFile(tmp_path / "state.pt", job.id), lambda p: alone.update({p.step: p.loss})
    )
    both = losses(mine.folder / "training.csv")
    assert both.keys() == set(range(1, STEPS + 1))
    assert both[1] == pytest.approx(alone[1], rel=1e-4)


def test_processes_of_a_task_need_a_cluster_and_have_their_resources(job, tmp_path):
    assert resources([job], 3) == (3 * job.threads, 0)
    assert resources([replace(job, cell=replace(job.cell, device="cuda"))], 3)[1] == 3
    assert sbatch_options(TWO, 4, 2)["gpus-per-node"] == 2
    with pytest.raises(UserError, match="needs --cluster slurm or local; here use torchrun"):
        check_cluster(Cluster("none", TWO), tmp_path, trains=True)
    with pytest.raises(UserError, match="is for trainings"):
        check_cluster(Cluster("local", TWO), tmp_path)
