"""The report in a real browser."""

import pytest

from menagerie.studies.report.pages import write_page
from tests.command import GRID, QUICK, succeed
from tests.studies.browser import CHROMIUM, TORN, after, assert_readable, verdict

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    succeed([*GRID, *QUICK, "--steps", "10", "--out", "runs/r"], folder)
    return folder / "runs/r/report.html"


@pytest.mark.parametrize("width", [1200, 420])
def test_a_report_has_no_broken_image_and_no_script_error(report, tmp_path, width):
    found = verdict(report, tmp_path, width)
    images, _, wrong = found.partition(" images; ")
    assert int(images) >= 5
    assert wrong == ""
    script = '<script>document.body.setAttribute("data-verdict", innerWidth);</script>'
    assert after(report, tmp_path, script, width) == str(width)
    if width < 1000:  # a telephone's
        assert_readable(report, tmp_path)


def test_the_browser_notices_broken_and_torn_pages(report, tmp_path):
    html, broken = report.read_text(), tmp_path / "broken.html"
    broken.write_text(html.replace("</h1>", '</h1><img src="nothing.png" alt="lost"><script>missing()</script>', 1))
    found = verdict(broken, tmp_path)
    assert "broken image: lost" in found
    assert "missing is not defined" in found
    torn = '</h1><p style="width: 3rem; overflow-wrap: anywhere">unbreakable</p>'
    broken.write_text(html.replace("</h1>", torn))
    assert after(broken, tmp_path, TORN) == "unbreakable"


COMMAND = f"python study.py --data-root {'x' * 30} --allow-missing --images {'y' * 38} --unknown-words skip"
# Options of a command that are on more than one line; how many there are.
OPTIONS = """<script>window.onload = () => {
  const parts = [...document.querySelectorAll(".whole")];
  const torn = parts.filter((part) => part.getClientRects().length > 1).length;
  document.body.setAttribute("data-verdict", torn + " of " + parts.length);
};</script>"""


@pytest.mark.parametrize("width", [1200, 700, 420])
def test_no_line_ends_within_an_option(tmp_path, width):
    page = written(tmp_path, "facts", {"command": COMMAND})
    assert after(page, tmp_path, OPTIONS, width) == "0 of 4"
    page.write_text(page.read_text().replace(".whole { white-space: nowrap; }", ""))
    assert width != 420 or after(page, tmp_path, OPTIONS, width) != "0 of 4"


# Words of a table's first column that are broken other than at their joints; whether the first number is in sight.
BROKEN = """<script>window.onload = () => {
  const broken = [];
  for (const cell of document.querySelectorAll("td:first-child")) {
    for (const node of [...cell.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
      for (const found of node.data.matchAll(/[^\\s-]+/g)) {
        const range = document.createRange();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        if (range.getClientRects().length > 1) broken.push(found[0]);
      }
    }
  }
  const edge = document.querySelector("td:nth-child(2)").getBoundingClientRect().right;
  document.body.setAttribute("data-verdict", broken.join(" ") + (edge < innerWidth ? "" : " out of sight"));
};</script>"""
NAMES = ["runs/binding_grid-smoke: oc-clip (pairs 0.2, hard_negatives 1.0, seed 0)", "clip, hard negatives 0%"]


@pytest.mark.parametrize("width", [1200, 420])
def test_names_are_broken_at_their_joints_and_leave_scores_in_sight(tmp_path, width):
    numbers = ["+43.8 [one pair]"] * 9
    rows = [["model", *(f"different_bag_{k}" for k in range(9))], *([name, *numbers] for name in NAMES)]
    assert after(written(tmp_path, "grid", rows), tmp_path, BROKEN, width) == ""
    torn = [["model", "n"], ["x" * 60, "1"]]
    assert width == 1200 or after(written(tmp_path, "grid", torn), tmp_path, BROKEN, width) == "x" * 60


def written(folder, macro, values):
    """A page with one of the tables of reports."""
    template = folder / "table.html"
    template.write_text(
        '{% extends "base_page.html" %}{% from "page_tables.html" import facts, grid %}'
        "{% block body %}{{ " + macro + "(values) }}{% endblock %}"
    )
    return write_page(folder / "page.html", template, title="Table", values=values)


ROWS = [["model", "accuracy", "pairs"], ["b", "9.5 [8, 10]", "20% (2 of 11)"], ["a10", "–", "100%"]]
ROWS += [["a9", "−10.0", "–"], ["c", "> 70", "8%"], ["d", "…", "…"]]
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
        ("0, 0, 0", "a9a10bcd ascending; dcba10a9 descending; ba10a9cd none"),
        ("1, 1", "a9bca10d ascending; cba9a10d descending"),
        ("2, 2, 0", "cba10a9d ascending; a10bca9d descending; a9a10bcd ascending"),
    ],
)
def test_tables_are_sorted_by_numbers_or_words(tmp_path, columns, expected):
    """Numbers by what they begin with; what is none stays last."""
    page = written(tmp_path, "grid", ROWS)
    assert after(page, tmp_path, PRESS.replace("COLUMNS", columns)) == expected
