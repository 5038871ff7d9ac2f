"""The report in a real browser."""

import pytest

from envs.common.pages import write_page
from tests.studies.browser import CHROMIUM, after, verdict
from tests.studies.command import GRID, QUICK, run_here

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    result = run_here([*GRID, *QUICK, "--steps", "10", "--out", "runs/r"], folder)
    assert result.returncode == 0, result.stderr
    return folder / "runs/r/report.html"


@pytest.mark.parametrize("width", [1200, 420])
def test_no_broken_image_and_no_script_error(report, tmp_path, width):
    found = verdict(report, tmp_path, width)
    images, _, wrong = found.partition(" images; ")
    assert int(images) >= 5
    assert wrong == ""


def test_a_broken_page_would_be_noticed(report, tmp_path):
    html = report.read_text()
    html = html.replace("</h1>", '</h1><img src="nothing.png" alt="lost"><script>missing()</script>', 1)
    (tmp_path / "broken.html").write_text(html)
    found = verdict(tmp_path / "broken.html", tmp_path)
    assert "broken image: lost" in found
    assert "missing is not defined" in found


ROWS = [["model", "accuracy", "pairs"], ["b", "9.5 [8, 10]", "20% (2 of 11)"], ["a10", "–", "100%"]]
ROWS += [["a9", "−10.0", "–"], ["c", "> 70", "8%"]]
# The first column's letters after each of some presses on a header.
PRESS = """<script>window.onload = () => {
  const table = document.querySelector("table"), seen = [];
  const look = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join("");
  for (const column of [COLUMNS]) {
    const head = table.tHead.rows[0].cells[column];
    head.querySelector("button").click();
    seen.push(look() + " " + head.getAttribute("aria-sort"));
  }
  document.body.setAttribute("data-verdict", [...seen, ...wrong].join("; "));
};</script>"""


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("0, 0, 0", "a9a10bc ascending; cba10a9 descending; ba10a9c none"),
        ("1, 1", "a9bca10 ascending; cba9a10 descending"),
        ("2, 2, 0", "cba10a9 ascending; a10bca9 descending; a9a10bc ascending"),
    ],
)
def test_tables_are_sorted_by_numbers_or_words(tmp_path, columns, expected):
    """Numbers by what they begin with; what is none stays last."""
    template = tmp_path / "table.html"
    template.write_text(
        '{% extends "base_page.html" %}{% from "page_tables.html" import grid %}'
        "{% block body %}{{ grid(rows) }}{% endblock %}"
    )
    page = write_page(tmp_path / "page.html", template, title="Sorted", rows=ROWS)
    assert after(page, tmp_path, PRESS.replace("COLUMNS", columns)) == expected
