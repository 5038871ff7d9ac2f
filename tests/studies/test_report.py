"""The report in a real browser."""

import pytest

from menagerie.studies.report.pages import write_page
from tests.command import GRID, QUICK, succeed
from tests.studies.browser import CHROMIUM, TELL, TORN, after, after_all, assert_readable, verdict

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    succeed([*GRID, *QUICK, "--steps", "10", "--out", "runs/r"], folder)
    return folder / "runs/r/report.html"


def test_a_report_is_readable_on_a_desk_and_on_a_telephone(report, tmp_path):
    assert_readable(report, tmp_path)
    script = '<script>document.body.setAttribute("data-verdict", innerWidth);</script>'
    found = after_all(report, tmp_path, {"shown": TELL, "wide": script}, 420)
    assert int(found["shown"].partition(" images; ")[0]) >= 5
    assert found["wide"] == "420"


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


def test_no_line_ends_within_an_option(tmp_path):
    page = written(tmp_path, "facts", {"command": COMMAND})
    assert after(page, tmp_path, OPTIONS, 420) == "0 of 4"
    page.write_text(page.read_text().replace(".whole { white-space: nowrap; }", ""))
    assert after(page, tmp_path, OPTIONS, 420) != "0 of 4"


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


def test_names_are_broken_at_their_joints_and_leave_scores_in_sight(tmp_path):
    numbers = ["+43.8 [one pair]"] * 9
    rows = [["model", *(f"different_bag_{k}" for k in range(9))], *([name, *numbers] for name in NAMES)]
    assert after(written(tmp_path, "grid", rows), tmp_path, BROKEN, 420) == ""
    torn = [["model", "n"], ["x" * 60, "1"]]
    assert after(written(tmp_path, "grid", torn), tmp_path, BROKEN, 420) == "x" * 60


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
