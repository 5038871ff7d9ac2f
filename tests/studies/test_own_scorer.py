"""A class of a user's own in a study: its flags, what is recorded of it, and mistakes named before anything is made."""

import json

import pytest

from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.cells import title_of
from tests.command import GRID, QUICK, read_rows, run_here, succeed

MINE = """
from dataclasses import dataclass
import torch
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.scorers.clip import CLIPConfig

@dataclass(frozen=True)
class MineConfig(CLIPConfig):
    width: int = 3
    "Some width of mine."

class Mine(CLIPScorer):
    config_class = MineConfig

class Forgetful(Mine):
    def __init__(self, towers, texts, config):
        super().__init__(towers, texts, config)
        del self.config

class Nan(Mine):
    def similarity(self, images, texts):
        return super().similarity(images, texts) * float("nan")
"""

TWO = [*QUICK, "--steps", "2", "--models", "mine.py:Mine", "mine.py:Forgetful"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run of two own classes, of which one keeps no config."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(MINE)
    succeed([*GRID, *TWO, "--mine.width", "5", "--out", "runs/a"], folder, page=False)
    return folder


def test_options_of_an_own_class_are_recorded_and_hold_for_its_folder(trained):
    out = trained / "runs" / "a"
    config = json.loads((out / "config.json").read_text())["config"]
    assert config["scorers"]["mine"] == {"logit_scale": pytest.approx(1 / 0.07), "width": 5}
    mine, _ = (json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines())
    assert mine["settings"]["options"] == {"width": 5}
    other = run_here([*GRID, *TWO, "--mine.width", "6", "--out", "runs/a"], trained)
    assert other.returncode == 2
    assert "belongs to another configuration: scorers" in other.stderr
    configs = [json.loads(file.read_text()) for file in out.glob("cells/*/checkpoint/config.json")]
    options = {config["model"]: config["options"] for config in configs}
    assert options["mine.py:Forgetful"] == {"logit_scale": pytest.approx(1 / 0.07), "width": 3}, "it keeps no config"


def test_runs_of_an_own_class_are_compared_wherever_its_file_lies(trained):
    models = ["--models", f"{trained}/mine.py:Mine", "--mine.width", "5"]
    assert run_here([*GRID, *QUICK, "--steps", "2", *models, "--out", "runs/b"], trained, page=False).returncode == 0
    succeed([*GRID, "--compare", "runs/a", "runs/b"], trained)
    rows = read_rows(trained / "runs" / "b" / "comparison.csv")
    assert {row["model"] for row in rows} == {"mine.py:Mine"}
    assert title_of(models[1]) == label_text("model", models[1]) == "mine.py:Mine"


def test_scores_that_are_not_finite_are_refused_before_rendering(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    done = run_here([*GRID, *QUICK, "--models", "mine.py:Nan"], tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not finite numbers" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["mine.py"]
