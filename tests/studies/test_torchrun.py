"""Studies under torchrun's agent: the first process runs them, all train their runs, and the others say nothing."""

import csv
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.processes import end_with_parent
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.training.state import StateFile
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.command import check_study
from menagerie.studies.frame.run import Running, one_run_study
from menagerie.studies.frame.run import train as train_one
from menagerie.studies.runs.executor import run_jobs
from menagerie.studies.runs.graphs import open_material
from menagerie.studies.runs.machine import start_server
from menagerie.studies.runs.shared import saved_step
from menagerie.studies.runs.slurm import Cluster
from menagerie.studies.runs.torchrun import JOINED, dismiss, follow_trainings, take_steps
from menagerie.studies.runs.train import fresh_scorer
from tests.command import GRID, run_here
from tests.helpers.ranks import together
from tests.helpers.splits import make_split

RECIPE = BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10)
STEPS, KILLED_AFTER = 260, 110  # a state is saved after every hundred steps


def process(command: list[str], folder: Path) -> None:
    """One process of torchrun, a fork of the server that the tests have."""
    end_with_parent()
    rank = os.environ["RANK"]
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, lambda *_: None)  # torchrun's may come between the command's end and the next line
    done = run_here(command, folder, figures=False)
    (folder / f"{rank}.txt").write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
    if done.returncode:
        os._exit(done.returncode)  # the agent keeps a function's process until all are done


def under_torchrun(count: int, command: list[str], folder: Path) -> list[tuple[int, list[str]]]:
    """Exit status and lines of each process; raises `ChildFailedError` if one is killed."""
    start_server(1)
    where = {"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:0", "start_method": "forkserver"}
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=count, max_restarts=0, **where)
    elastic_launch(config, process)(command, folder)
    return [said(folder, rank) for rank in range(count)]


def said(folder: Path, rank: int) -> tuple[int, list[str]]:
    status, *lines = (folder / f"{rank}.txt").read_text().splitlines()
    return int(status), lines


def kill_second(folder: Path, gone: list[float]) -> None:
    """Kill the second process when its run has taken some steps."""
    while len(rows(folder)) < KILLED_AFTER:
        time.sleep(0.02)
    gone.append(time.monotonic())
    os.kill(int((folder / "1.pid").read_text()), signal.SIGKILL)


def rows(folder: Path) -> list[dict[str, str]]:
    """What the log of the only cell has."""
    files = list(folder.glob("run/cells/*/training.csv"))
    return list(csv.DictReader(files[0].open())) if files else []


@pytest.fixture(scope="module")
def split(tmp_path_factory) -> Path:
    return make_split(tmp_path_factory.mktemp("split"), RECIPE, resolution=32)


@pytest.fixture(scope="module")
def command(split) -> list[str]:
    """A study of one run."""
    options = ["--preset", "smoke", "--models", "clip", "--batch", "12", "--split", str(split), "--out", "run"]
    return [*GRID, *options, "--steps", str(STEPS)]


def job_of(split: Path, folder: Path):
    study = one_run_study("clip", split, 0, {}, {"architecture": "nano", "resolution": 32, "steps": 9, "batch": 12})
    running = Running(study.fill_in(), folder)
    (arm,) = running.arms()
    return running.job(arm)


def test_a_killed_process_ends_all_with_one_line_and_another_number_goes_on(command, tmp_path):
    gone: list[float] = []
    killer = threading.Thread(target=kill_second, args=(tmp_path, gone), daemon=True)
    killer.start()
    with pytest.raises(ChildFailedError):
        under_torchrun(2, command, tmp_path)
    assert time.monotonic() - gone[0] < 60
    status, lines = said(tmp_path, 0)
    assert status in (2, 143)  # torchrun asks it to end, too, but mostly later
    assert sum("the same command continues" in line for line in lines) == 1
    assert "the same command continues" in lines[-1]
    assert not (tmp_path / "1.txt").exists()
    (first, lines), *others = under_torchrun(3, command, tmp_path)
    assert others == [(0, []), (0, [])]
    assert first == 0
    assert "report: run/report.html" in lines[-1]
    assert [int(row["step"]) for row in rows(tmp_path)] == list(range(1, STEPS + 1))


def interrupting(scorer, step):
    """Have the scorer press Ctrl-C in the middle of a step."""
    count = iter(range(1, step + 2))

    def press(*_):
        if next(count, 0) == step:
            signal.raise_signal(signal.SIGINT)

    scorer.pixel_scale.register_forward_hook(press)
    return scorer


def two_trainings(ranks, job):
    """What the first process is told of two trainings, of which the first fails alike in all processes."""
    JOINED["cpu"] = ranks
    if ranks.share.rank:
        return follow_trainings(ranks)
    material, said = open_material(job), []
    recipe = replace(job.cell.recipe, image_negatives=True)  # which the split lacks
    for each in (replace(job, cell=replace(job.cell, recipe=recipe)), job):
        scorer = interrupting(fresh_scorer(each, material), 3)
        try:
            take_steps(each, material, scorer, StateFile(job.out / "state.pt", job.id), lambda progress: None)
        except (UserError, Stopped) as end:
            said.append(f"{type(end).__name__} {end}")
    dismiss(ranks)
    return said


def test_processes_go_on_after_a_common_error_and_end_with_an_interrupted_step(split, tmp_path):
    (failed, stopped), status = together(tmp_path / "two", 2, two_trainings, job_of(split, tmp_path))
    assert "has a counterfactual, the same objects swapped" in failed
    assert stopped.startswith("Stopped")
    assert status == 0
    assert saved_step(tmp_path / "state.pt") == 3


SMOKE = PRESETS["smoke"]


@pytest.fixture
def first_of_two(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")


@pytest.mark.parametrize(
    ("study", "line"),
    [
        (replace(SMOKE, cluster=Cluster("local")), "--cluster local under torchrun"),
        (replace(SMOKE, device="cuda:1"), "--device cuda:1: each of 2 processes takes a GPU of its own"),
        (replace(SMOKE, recipe=replace(SMOKE.recipe, batch=9)), "--batch 9 can't be shared by 2 processes"),
    ],
)
@pytest.mark.usefixtures("first_of_two")
def test_options_that_torchrun_excludes_are_refused_before_anything_is_made(study, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=line):
        check_study(study)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("first_of_two")
def test_commands_that_every_process_would_repeat_are_refused(split, tmp_path):
    with pytest.raises(UserError, match="each of which would do all of this"):
        train_one("clip", split, tmp_path)
    with pytest.raises(UserError, match="each of which would do all of this"):
        run_jobs([job_of(split, tmp_path)], Cluster(), 1, tmp_path, lambda job: None)
    assert list(tmp_path.iterdir()) == []
