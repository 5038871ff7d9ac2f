"""A class of a user's own in a study: its flags, what is recorded of it, and mistakes named before anything is made."""

import csv
import json

import pytest

from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.cells import title_of
from tests.command import GRID, QUICK, run_here

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

class NoConfig(CLIPScorer):
    config_class = None

class Forgetful(Mine):
    def __init__(self, towers, texts, config):
        super().__init__(towers, texts, config)
        del self.config

class Nan(Mine):
    def similarity(self, images, texts):
        return super().similarity(images, texts) * float("nan")

class Neighbours(Mine):
    def similarity(self, images, texts):
        return super().similarity(images, texts).softmax(1)
"""

TWO = [*QUICK, "--steps", "2", "--models", "mine.py:Mine", "mine.py:Forgetful"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_it_has_one_name_in_tables_and_sentences(folder):
    model = f"{folder}/mine.py:Mine"
    assert title_of(model) == label_text("model", model) == "mine.py:Mine"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run of two own classes, of which one keeps no config."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(MINE)
    done = run_here([*GRID, *TWO, "--mine.width", "5", "--out", "runs/a"], folder, figures=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_is_trained_and_its_options_are_recorded(trained):
    out = trained / "runs" / "a"
    config = json.loads((out / "config.json").read_text())["config"]
    assert config["scorers"]["mine"] == {"logit_scale": pytest.approx(1 / 0.07), "width": 5}
    mine, _ = (json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines())
    assert mine["settings"]["options"] == {"width": 5}
    assert "mine" in (out / "report.html").read_text()
    other = run_here([*GRID, *TWO, "--mine.width", "6", "--out", "runs/a"], trained)
    assert other.returncode == 2
    assert "belongs to another configuration: scorers" in other.stderr


def test_it_need_not_keep_its_config(trained):
    files = (trained / "runs" / "a").glob("cells/*/checkpoint/config.json")
    options = {config["model"]: config["options"] for config in (json.loads(file.read_text()) for file in files)}
    assert options["mine.py:Forgetful"] == {"logit_scale": pytest.approx(1 / 0.07), "width": 3}


def test_two_runs_of_it_are_compared_wherever_its_file_lies(trained):
    models = ["--models", f"{trained}/mine.py:Mine", "--mine.width", "5"]
    assert run_here([*GRID, *QUICK, "--steps", "2", *models, "--out", "runs/b"], trained, page=False).returncode == 0
    compared = run_here([*GRID, "--compare", "runs/a", "runs/b"], trained)
    assert compared.returncode == 0, compared.stderr
    rows = list(csv.DictReader((trained / "runs" / "b" / "comparison.csv").open()))
    assert {row["model"] for row in rows} == {"mine.py:Mine"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nan", "not finite numbers"),
    ],
)
def test_mistakes_are_named_before_rendering(name, message, folder):
    done = run_here([*GRID, *QUICK, "--models", f"mine.py:{name}"], folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == ["mine.py"]
