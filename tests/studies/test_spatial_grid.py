"""The spatial grid as a user runs it."""

import csv
import json
import sys

import pytest

from menagerie.studies.spatial_grid import Config
from tests.command import ROOT, run_here

SPATIAL = [sys.executable, str(ROOT / "studies" / "spatial_grid.py"), "--preset", "smoke", "--hard-negatives", "0"]
SHORT = ["--steps", "6", "--batch", "8", "--test-scenes", "12"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spatial")
    result = run_here([*SPATIAL, *SHORT, "--out", "runs/a"], folder, figures=False)
    assert result.returncode == 0, result.stderr
    return folder


def test_tests_both_relations_apart(folder):
    rows = list(csv.DictReader((folder / "runs/a/results.csv").open()))
    subsets = {row["subset"] for row in rows}
    assert subsets == {"validation", *Config().tests}
    assert {row["task"] for row in rows} >= {"swap", "replace relation", "replace animal", "group score"}
    assert all(int(row["n"]) > 0 for row in rows)
    report = (folder / "runs/a/report.html").read_text()
    assert "the same words with the two animals swapped" in report
    assert "left_right_unseen_order" in report


def test_cells_know_their_kind_of_split(folder):
    cells = [json.loads(line) for line in (folder / "runs/a/cells.jsonl").read_text().splitlines()]
    assert {cell["settings"]["data"]["kind"] for cell in cells} == {"spatial"}
    assert {cell["model"]: cell["training_pairs"] for cell in cells} == {"clip": 4, "oc-clip": 4}


def test_one_relation_alone(folder):
    options = ["--relations", "above/under", "--models", "clip", "--out", "runs/b"]
    result = run_here([*SPATIAL, *SHORT, *options], folder, page=False)
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((folder / "runs/b/results.csv").open()))
    assert {row["subset"] for row in rows} == {"validation", "above_under_unseen_order", "above_under_unseen_pairs"}
    assert "replace relation" not in {row["task"] for row in rows}
