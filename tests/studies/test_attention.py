"""The attention of a finished run."""

import csv
import sys

import pytest

from tests.command import GRID, QUICK, ROOT, run_here

ATTENTION = [sys.executable, str(ROOT / "studies" / "attention.py")]


MINE = """
from dataclasses import dataclass
from menagerie.models.scorers.oc_clip.model import OCCLIPScorer
from menagerie.models.scorers.oc_clip.spec import OCCLIPConfig

@dataclass(frozen=True)
class MineConfig(OCCLIPConfig):
    dim: int = 16
    relation_dim: int = 8
    layers: int = 0

class Mine(OCCLIPScorer):
    config_class = MineConfig
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of a model with attention, one without and one of a user's own."""
    folder = tmp_path_factory.mktemp("attention")
    (folder / "mine.py").write_text(MINE)
    models = ["--models", "clip", "oc-clip", "mine.py:Mine"]
    result = run_here([*GRID, *QUICK, "--steps", "10", *models, "--out", "runs/a"], folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_measures_every_test_of_models_that_have_attention(folder):
    result = run_here([*ATTENTION, "runs/a", "--scenes", "2"], folder)
    assert result.returncode == 0, result.stderr
    assert "clip has no attention and is left out" in result.stdout
    rows = list(csv.DictReader((folder / "runs/a/attention.csv").open()))
    assert {row["model"] for row in rows} == {"oc-clip"}
    assert {row["subset"] for row in rows} >= {"validation", "unseen_pairs"}
    assert all(0 <= float(row["overlap"]) <= 1 and 0 <= float(row["own_above_other"]) <= 1 for row in rows)
    assert "mine.py:Mine is left out: its file is run only if you add --code mine.py:Mine" in result.stdout
    (picture,) = folder.glob("runs/a/cells/*/attention.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["runs/none"], "is not the folder of a grid"), (["runs/a", "--scenes", "0"], "--scenes must be")],
)
def test_a_mistake_is_one_line(folder, arguments, message):
    result = run_here([*ATTENTION, *arguments], folder)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_elsewhere_the_way_out_is_told(folder, tmp_path):
    result = run_here([*ATTENTION, str(folder / "runs/a")], tmp_path)
    assert result.returncode == 2
    assert "start this command where the study was started" in result.stderr
    assert str(tmp_path / "store") in result.stderr
    there = run_here([*ATTENTION, str(folder / "runs/a"), "--store", str(folder / "store")], tmp_path)
    assert there.returncode == 0, there.stderr


def test_a_run_without_attention_is_no_error(folder):
    command = [*GRID, *QUICK, "--steps", "2", "--models", "clip", "--out", "runs/clip"]
    assert run_here(command, folder).returncode == 0
    result = run_here([*ATTENTION, "runs/clip"], folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert "nothing to measure" in result.stdout
    assert not (folder / "runs/clip/attention.csv").exists()


def test_a_class_of_ones_own_takes_part_once_it_is_named(folder):
    result = run_here([*ATTENTION, "runs/a", "--code", "mine.py:Mine"], folder)
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((folder / "runs/a/attention.csv").open()))
    assert {row["model"] for row in rows} == {"oc-clip", "mine.py:Mine"}


def test_whatever_a_study_varies_has_a_column(folder):
    """Two places of one run that differ in the views alone are told apart."""
    study = [sys.executable, str(ROOT / "studies" / "split_study.py"), "--preset", "smoke", "--recipe", "binding"]
    options = ["--world", "tiny", "--axes", "views=1,2", "--models", "oc-clip", "--pairs", "0.5", "--test-scenes", "8"]
    done = run_here([*study, *options, "--steps", "2", "--batch", "8", "--out", "runs/axes"], folder)
    assert done.returncode == 0, done.stderr
    result = run_here([*ATTENTION, "runs/axes", "--scenes", "1"], folder)
    assert result.returncode == 0, result.stderr
    assert "oc-clip 50% pairs 0% negatives views 2 seed 0" in result.stdout
    rows = list(csv.DictReader((folder / "runs/axes/attention.csv").open()))
    assert {row["views"] for row in rows} == {"1", "2"}
    assert {row["views"] for row in rows if row["subset"] == "validation"} == {"1", "2"}
    assert list(rows[0])[:5] == ["model", "seed", "pairs", "hard_negatives", "views"]
