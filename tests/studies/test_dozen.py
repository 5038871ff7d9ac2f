"""Reports of a dozen models stay readable: nothing is wider than the window, and every model is named."""

import json
import re
import sys

import pytest

from tests.command import ROOT
from tests.forked import run_forked
from tests.helpers.splits import lend_atlas
from tests.studies.browser import CHROMIUM, verdict
from tests.studies.dozen import NAMES

DOZEN = [sys.executable, str(ROOT / "tests" / "studies" / "dozen.py")]
SHORT = ["--preset", "smoke", "--steps", "2", "--batch", "8", "--views", "1", "--test-scenes", "12"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A grid of one place with a dozen models."""
    folder = tmp_path_factory.mktemp("dozen")
    lend_atlas(folder)
    command = [*DOZEN, "binding_grid", *SHORT, "--hard-negatives", "1", "--models", *NAMES, "--out", "runs/one"]
    done = run_forked(command, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_one_place_is_bars_and_not_a_heat_map(folder):
    """The best model first, each with its number."""
    svg = (folder / "runs/one/figures/accuracy.svg").read_text()
    texts = re.findall(r"<!-- (.*?) -->", svg)
    shown = [text for text in texts if text in NAMES]
    results = [json.loads(line) for line in (folder / "runs/one/cells.jsonl").read_text().splitlines()]

    def mean(result):
        values = [tasks["swap"]["accuracy"] for name, tasks in result["subsets"].items() if name != "validation"]
        return sum(known := [value for value in values if value is not None]) / len(known)

    best = sorted(results, key=mean, reverse=True)
    assert shown == [result["model"] for result in best]
    assert any(re.fullmatch(r"\d+\.\d", text) for text in texts)


def test_task_tables_have_a_part_for_each_test_and_no_column_that_says_nothing(folder):
    html = (folder / "runs/one/report.html").read_text()
    part = html.partition("<h2>All tasks</h2>")[2].partition("<h2>")[0]
    heads = [re.sub("<.*?>", "", head) for head in re.findall(r"<thead><tr>(.*?)</tr>", part)]
    assert len(heads) == len(re.findall("<h3>", part)) == 3  # no pair is unswapped in training: seen_pairs is empty
    assert "In all rows: pairs 50% (2 of 4), hard negatives 100%." in html
    assert all(head.startswith("modelswap") for head in heads)
    assert "<title>Attribute binding: 12 models</title>" in html


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1200, 420])
def test_the_page_fits_its_window(folder, tmp_path, width):
    assert verdict(folder / "runs/one/report.html", tmp_path, width).partition(" images; ")[2] == ""
