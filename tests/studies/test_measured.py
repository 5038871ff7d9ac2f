"""The tables of README and docs/results.md against the results that they are of, where docs/measured keeps these."""

import re
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest

from models.registry import specs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\((?:docs/)?measured/([\w-]+\.csv)\)")
# How columns begin whose numbers are not of these files, and rows.
OTHER = ("search", "parameters", "CPU", "above CLIP", "above OC-CLIP", "alpha")
OTHER_ROWS = re.compile(r"difference, 95 % interval|.*, before the mends")
UNSEEN = "unseen pairs: "  # before a task, with deviation
CHOSEN_BY = {"validation", "train_pairs"}  # not among the tests whose lowest a table of an ablation's rows has


def measured_tables(page):
    """Every table of a page as lines of cells, with the files that the next links below it name."""
    lines: list[list[str]] = []
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            lines = []
        elif line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|").split("|")])
        elif files := LINK.findall(line):
            starts = [i - 1 for i, cells in enumerate(lines) if all(cell.strip("-") == "" for cell in cells)]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                yield lines[start], lines[start + 2 : end], files
            lines = []


def all_tables():
    """Those of both pages. README has models side by side, and below each other what they are tested in."""
    for header, rows, files in measured_tables(DOCS / "results.md"):
        yield pytest.param(header, rows, files, id=f"{files[0]} {header[1]}")
    for header, rows, files in measured_tables(ROOT / "README.md"):
        header, *rows = map(list, zip(header, *rows, strict=True))
        yield pytest.param(header, rows, files, id=f"README {files[0]}")


def expected(scores, column):
    """What may stand in a column: a task on what is unseen, or of unseen pairs or swaps of any test with deviation."""
    named = column.removeprefix(UNSEEN)
    task = named if named in set(scores["task"]) else "swap"
    if named != column:
        assert task == named, column
        scores = scores[scores["subset"] == "unseen_pairs"]
    own = scores[scores["task"] == task].dropna(subset=["accuracy"])
    tests = {test: its.tolist() for test, its in own.groupby("subset")["accuracy"]}
    test = re.sub("[/, ]+", "_", column)
    tests = {test: tests[test]} if test in tests else tests
    if task == column:
        return {f"{100 * mean(mean(its) for test, its in tests.items() if 'unseen' in test):.1f}"}
    return {f"{100 * mean(its):.1f} ± {100 * stdev(its):.1f}" for its in tests.values()}


def lowest(scores, task):
    """What stands in a column of an ablation's row: of a task the lowest test, mean over seeds."""
    tests = scores[(scores["task"] == task) & ~scores["subset"].isin(CHOSEN_BY)].groupby("subset")["accuracy"]
    return {f"{100 * min(mean(its) for _, its in tests):.1f}"}


@pytest.mark.parametrize(("header", "rows", "files"), list(all_tables()))
def test_tables_are_those_of_the_results_they_name(header, rows, files):
    results = pd.concat(pd.read_csv(DOCS / "measured" / file) for file in files)
    names = {spec.title: name for name, spec in specs().items()}
    ablation = "row" in results
    for title, *cells in (row for row in rows if not OTHER_ROWS.fullmatch(row[0])):
        scores = results[results["row"] == title] if ablation else results[results["model"] == names[title]]
        for column, cell in zip(header[1:], cells, strict=True):
            if not column.startswith(OTHER):
                lowest_of = ablation and column in set(results["task"])
                allowed = lowest(scores, column) if lowest_of else expected(scores, column)
                assert cell in allowed, f"{title}, {column}"


def test_every_file_of_results_is_named():
    """And some tables are checked."""
    named = {file for param in all_tables() for file in param.values[2]}
    assert named == {file.name for file in (DOCS / "measured").glob("*.csv")} != set()
