"""The attention of a finished run."""

import sys

import pytest

from tests.command import ROOT, read_rows, run_here, succeed

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
    """A run of a model with attention, one without, and one of the user's own, at two places; and the attention of all
    but the user's own."""
    folder = tmp_path_factory.mktemp("attention")
    (folder / "mine.py").write_text(MINE)
    models = ["--models", "clip", "oc-clip", "mine.py:Mine", "--axes", "views=1,2"]
    succeed([*STUDY, *SMALL, *models, "--out", "runs/a"], folder, page=False)
    result = succeed([*ATTENTION, "runs/a", "--scenes", "2"], folder)
    (folder / "output.txt").write_text(result.stdout)
    return folder


def test_every_test_of_models_with_attention_is_measured_at_every_place(folder):
    output, rows = (folder / "output.txt").read_text(), read_rows(folder / "runs/a/attention.csv")
    assert "clip has no attention and is left out" in output
    assert "mine.py:Mine is left out" in output
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


def test_a_users_class_is_measured_once_named_and_nothing_is_measured_twice(folder):
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("runs/a/cells/*/measures/*")}
    before = read_rows(folder / "runs/a/attention.csv")
    command = [*ATTENTION, "runs/a", "--scenes", "2", "--code", "mine.py:Mine", "--workers", "2"]
    succeed(command, folder)
    rows = read_rows(folder / "runs/a/attention.csv")
    assert {row["model"] for row in rows} == {"oc-clip", "mine.py:Mine"}
    assert [row for row in rows if row["model"] == "oc-clip"] == before
    assert len(kept) == 4
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())


def test_attention_elsewhere_without_a_store_is_refused(folder, tmp_path):
    result = run_here([*ATTENTION, str(folder / "runs/a")], tmp_path)
    assert result.returncode == 2
    assert str(tmp_path / "store") in result.stderr
    succeed([*ATTENTION, str(folder / "runs/a"), "--scenes", "2", "--store", str(folder / "store")], tmp_path)
