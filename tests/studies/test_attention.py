"""The attention of a finished run."""

import csv
import sys

import pytest

from tests.studies.command import GRID, QUICK, ROOT, run

ATTENTION = [sys.executable, str(ROOT / "studies" / "attention.py")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attention")
    result = run([*GRID, *QUICK, "--steps", "10", "--out", "runs/a"], folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_measures_every_test_of_models_that_have_attention(folder):
    result = run([*ATTENTION, "runs/a", "--scenes", "2"], folder)
    assert result.returncode == 0, result.stderr
    assert "clip has no attention" in result.stdout
    rows = list(csv.DictReader((folder / "runs/a/attention.csv").open()))
    assert {row["model"] for row in rows} == {"oc-clip"}
    assert {row["subset"] for row in rows} >= {"validation", "unseen_pairs"}
    assert all(0 <= float(row["overlap"]) <= 1 and 0 <= float(row["own_above_other"]) <= 1 for row in rows)
    (picture,) = folder.glob("runs/a/cells/*/attention.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["runs/none"], "is not the folder of a grid"), (["runs/a", "--scenes", "0"], "--scenes must be")],
)
def test_a_mistake_is_one_line(folder, arguments, message):
    result = run([*ATTENTION, *arguments], folder)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_elsewhere_the_way_out_is_told(folder, tmp_path):
    result = run([*ATTENTION, str(folder / "runs/a")], tmp_path)
    assert result.returncode == 2
    assert "start this command where the study was started" in result.stderr
