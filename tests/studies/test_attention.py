"""The attention of a finished run."""

import csv
import sys

import pytest

from tests.command import ROOT, run_here, succeed

ATTENTION = [sys.executable, str(ROOT / "studies" / "attention.py")]
STUDY = [sys.executable, str(ROOT / "studies" / "split_study.py"), "--preset", "smoke", "--recipe", "binding"]
SMALL = ["--world", "tiny", "--pairs", "0.5", "--test-scenes", "8", "--steps", "2", "--batch", "8"]
MINE = """
from dataclasses import dataclass
from menagerie.models.networks.oc_clip import OCCLIPScorer
from menagerie.models.scorers.oc_clip import OCCLIPConfig

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
    """A run of a model with attention, one without and one of a user's own, at two places that differ in views alone;
    and the attention of all but the user's own."""
    folder = tmp_path_factory.mktemp("attention")
    (folder / "mine.py").write_text(MINE)
    models = ["--models", "clip", "oc-clip", "mine.py:Mine", "--axes", "views=1,2"]
    succeed([*STUDY, *SMALL, *models, "--out", "runs/a"], folder, page=False)
    result = succeed([*ATTENTION, "runs/a", "--scenes", "2"], folder)
    (folder / "output.txt").write_text(result.stdout)
    return folder


def rows_of(run):
    return list(csv.DictReader((run / "attention.csv").open()))


def test_measures_every_test_of_models_that_have_attention_at_every_place(folder):
    output, rows = (folder / "output.txt").read_text(), rows_of(folder / "runs/a")
    assert "clip has no attention and is left out" in output
    assert "mine.py:Mine is left out: its file is run only if you add --code mine.py:Mine" in output
    assert "oc-clip 50% pairs 0% negatives views 2 seed 0" in output
    assert list(rows[0])[:5] == ["model", "seed", "pairs", "hard_negatives", "views"]
    measured = {(row["model"], row["views"], row["subset"]) for row in rows}
    assert measured >= {("oc-clip", views, name) for views in "12" for name in ("validation", "unseen_pairs")}
    assert {row["model"] for row in rows} == {"oc-clip"}
    assert all(0 <= float(row["overlap"]) <= 1 and 0 <= float(row["own_above_other"]) <= 1 for row in rows)
    assert {(row["left_out"], row["training"]) for row in rows} == {("0", "known")}
    assert {row["pairs_had"] for row in rows if row["subset"] == "unseen_pairs"} == {"0"}
    pictures = list(folder.glob("runs/a/cells/*/attention.png"))
    assert len(pictures) == 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_a_class_of_ones_own_takes_part_once_it_is_named(folder):
    """On two workers; what was measured before isn't measured again."""
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("runs/a/cells/*/measures/*")}
    before = rows_of(folder / "runs/a")
    command = [*ATTENTION, "runs/a", "--scenes", "2", "--code", "mine.py:Mine", "--workers", "2"]
    succeed(command, folder)
    rows = rows_of(folder / "runs/a")
    assert {row["model"] for row in rows} == {"oc-clip", "mine.py:Mine"}
    assert [row for row in rows if row["model"] == "oc-clip"] == before
    assert len(kept) == 4
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())


def test_elsewhere_the_way_out_is_told(folder, tmp_path):
    result = run_here([*ATTENTION, str(folder / "runs/a")], tmp_path)
    assert result.returncode == 2
    assert "give its --store" in result.stderr
    assert str(tmp_path / "store") in result.stderr
    succeed([*ATTENTION, str(folder / "runs/a"), "--scenes", "2", "--store", str(folder / "store")], tmp_path)
