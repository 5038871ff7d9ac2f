"""The study of sample efficiency as a user runs it, on one machine and on a cluster."""

import csv
import html
import shutil
import sys

import pytest

from menagerie.studies.runs.results import read_result
from menagerie.studies.sample_search.points import FEWEST
from tests.command import ROOT, read_rows, run_here, succeed
from tests.forked import kill_when
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
    report = (study / "report.html").read_text()
    figures = {path.stem for path in (study / "figures").glob("*.png")}
    assert {"fronts", "map", "history", "parallel-1", "parallel-2"} <= figures
    assert "<code>validation</code>" in report
    assert f"fewer than {FEWEST} finished settings" in report, "three trials say nothing of what mattered"
    for name in ("pareto_fronts", "hypervolumes", "targets"):
        assert r"\begin{table}" in (study / f"{name}.tex").read_text()
    (ratio,) = csv.DictReader((study / "ratios.csv").open())
    assert ratio["other model"] == "oc-clip"
    page = html.unescape(plain(study / "report.html"))
    assert ratio["in words"] in page
    assert "This is a smoke run: no model was trained for more than 8 steps" in page
    with_target = [row["model"] for row in csv.DictReader((study / "targets.csv").open()) if row["passes"] != "–"]
    assert page.count("On the test the setting by which") == len(with_target)


def test_killed_and_started_again_it_tries_the_same(study, tmp_path):
    shutil.copytree(study.parents[1] / "store", tmp_path / "store")
    out = tmp_path / "runs/b"
    command = [*STUDY, *QUICK, "--out", "runs/b"]
    kill_when(command, tmp_path, lambda: len(list(out.glob("cells/*/result.json"))) >= 2)
    succeed(command, tmp_path, page=False)
    assert (out / "trials.csv").read_bytes() == (study / "trials.csv").read_bytes()
    for cell in out.glob("cells/*"):
        assert read_result(cell)["subsets"] == read_result(study / "cells" / cell.name)["subsets"]


def test_a_password_is_nowhere_in_the_folder(tmp_path):
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/none"
    result = run_here([*STUDY, *QUICK, "--storage", url, "--out", "runs/p"], tmp_path, figures=False)
    assert result.returncode == 2
    assert "can't be opened" in result.stderr
    config = (tmp_path / "runs/p/config.json").read_text()
    assert "me:***@127" in config
    assert "secret" not in config + result.stderr
