"""The study of sample efficiency as a user runs it."""

import sys

import pytest

from tests.command import ROOT, read_rows, run_here, succeed
from tests.studies.browser import plain

STUDY = [sys.executable, str(ROOT / "studies" / "sample_efficiency.py"), "--preset", "smoke"]
QUICK = ["--seeds", "1", "--trials", "3", "--steps", "8", "--test-scenes", "8", "--workers", "1"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with one undisturbed run by one worker."""
    folder = tmp_path_factory.mktemp("sample")
    succeed([*STUDY, *QUICK, "--out", "runs/a"], folder, figures=False)
    return folder / "runs/a"


def test_a_run_ends_with_its_report(study):
    rows = read_rows(study / "trials.csv")
    for model in ("clip", "oc-clip"):
        for question in ("front", "target"):
            mine = [row for row in rows if (row["model"], row["question"]) == (model, question)]
            assert [row["trial"] for row in mine] == ["0", "1", "2"]
            assert {row["state"] for row in mine} <= {"complete", "pruned", "missed"}
            assert {row["images_seen"] for row in mine} == {str(8 * 16)}
    first = [{name: row[name] for name in ("pairs", "singles_share", "images")} for row in rows if row["trial"] == "1"]
    assert first == first[:1] * 4, "all searches begin alike"
    figures = {path.stem for path in (study / "figures").glob("*.png")}
    assert {"fronts", "front-history", "front-slice-2", "target-slice-1"} <= figures
    assert [row["model"] for row in read_rows(study / "targets.csv")] == ["clip", "oc-clip"]
    (ratio,) = read_rows(study / "ratios.csv")
    assert ratio["other model"] == "oc-clip"
    assert "This is a smoke run: no model was trained for more than 8 steps" in plain(study / "report.html")


def test_a_password_is_nowhere_in_the_folder(tmp_path):
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/none"
    result = run_here([*STUDY, *QUICK, "--storage", url, "--out", "runs/p"], tmp_path, figures=False)
    assert result.returncode == 2
    assert "can't be opened" in result.stderr
    config = (tmp_path / "runs/p/config.json").read_text()
    assert "me:***@127" in config
    assert "secret" not in config + result.stderr
