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

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import end_with_parent
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.cluster.jobs import Cluster
from menagerie.studies.frame.checks import check
from menagerie.studies.runs.machine import check_device_here, start_server
from tests.command import GRID, run_here
from tests.helpers.splits import make_split

RECIPE = BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10)
STEPS, KILLED_AFTER = 260, 110  # a state is saved after every hundred steps


def process(command: list[str], folder: Path) -> None:
    """One process of torchrun, a fork of the server that the tests have."""
    end_with_parent()
    rank = os.environ["RANK"]
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    done = run_here(command, folder)
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
def command(tmp_path_factory) -> list[str]:
    """A study of one run."""
    file = make_split(tmp_path_factory.mktemp("split"), RECIPE, resolution=32)
    options = ["--preset", "smoke", "--models", "clip", "--batch", "12", "--split", str(file), "--out", "run"]
    return [*GRID, *options, "--steps", str(STEPS)]


def test_a_killed_process_ends_all_with_one_line_and_another_number_goes_on(command, tmp_path):
    gone: list[float] = []
    killer = threading.Thread(target=kill_second, args=(tmp_path, gone), daemon=True)
    killer.start()
    with pytest.raises(ChildFailedError):
        under_torchrun(2, command, tmp_path)
    assert time.monotonic() - gone[0] < 60
    status, lines = said(tmp_path, 0)
    assert status in (2, 143)  # torchrun asks it to end, too, but mostly later
    assert sum("the same command goes on" in line for line in lines) == 1
    assert "the same command goes on" in lines[-1]
    assert not (tmp_path / "1.txt").exists()
    (first, lines), *others = under_torchrun(3, command, tmp_path)
    assert others == [(0, []), (0, [])]
    assert first == 0
    assert "report: run/report.html" in lines[-1]
    assert [int(row["step"]) for row in rows(tmp_path)] == list(range(1, STEPS + 1))


SMOKE = PRESETS["smoke"]


@pytest.mark.parametrize(
    ("study", "line"),
    [
        (replace(SMOKE, workers=2), "--workers 2: under torchrun runs go one after another"),
        (replace(SMOKE, cluster=Cluster("local")), "--cluster local makes tasks of single processes"),
        (replace(SMOKE, device="cuda:1"), "--device cuda:1: under torchrun each process takes a GPU of its own"),
        (replace(SMOKE, recipe=replace(SMOKE.recipe, batch=9)), "--batch 9 can't be shared by 2 processes"),
    ],
)
def test_what_torchrun_does_not_go_with_is_refused_before_anything_is_made(study, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=line):
        check(study)
    assert list(tmp_path.iterdir()) == []


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    check_device_here("cuda", 2)
    with pytest.raises(UserError, match="starts 3 processes here, but there are 2 GPUs"):
        check_device_here("cuda", 3)
