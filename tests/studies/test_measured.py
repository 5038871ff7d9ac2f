"""The tables of README and docs/results.md against the results that they are of, where docs/measured keeps these."""

import re
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest

from menagerie.models.registry import specs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\((?:docs/)?measured/([\w-]+\.csv)\)")
# How columns begin whose numbers are not of these files, and rows.
OTHER = ("search", "parameters", "CPU", "above CLIP", "above OC-CLIP", "alpha", "what changes", "opposite in the batch")
OTHER_ROWS = re.compile(r"difference, 95 % interval|.*, before the mends")
UNSEEN = "unseen pairs: "  # before a task, with deviation
SHORT = {"seen pairs, swapped": "seen_pairs", "different bag: other textures": "different_bag"}  # names of tests
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


def expected(scores, column, relation):
    """What stands in a column: a task, its mean over what is unseen; a task of unseen pairs, or the swaps of a test,
    with deviation. A test may be named without its relation, if that is the one of a column before it."""
    tasks = set(scores["task"])
    task, test = column.removeprefix(UNSEEN), "unseen_pairs"
    if task not in tasks:
        task, test = "swap", column if "/" in column or not relation else f"{relation}, {column}"
        test = SHORT.get(test, re.sub("[/, ]+", "_", test))
    own = scores[scores["task"] == task].dropna(subset=["accuracy"])
    tests = {name: its.tolist() for name, its in own.groupby("subset")["accuracy"]}
    if task == column:
        return f"{100 * mean(mean(its) for name, its in tests.items() if 'unseen' in name):.1f}"
    return f"{100 * mean(tests[test]):.1f} ± {100 * stdev(tests[test]):.1f}"


def lowest(scores, task):
    """What stands in a column of an ablation's row: of a task the lowest test, mean over seeds."""
    tests = scores[(scores["task"] == task) & ~scores["subset"].isin(CHOSEN_BY)].groupby("subset")["accuracy"]
    return f"{100 * min(mean(its) for _, its in tests):.1f}"


BITS = "bits-"  # how files of bits begin
STAGES = {"all patches": ("image", "tokens"), "image code": ("image", "code"), "text code": ("text", "code")}
STAGES["score"] = ("image and text", "score")


def tables(bits):
    """Those of bits of codes, or all others."""
    return [param for param in all_tables() if param.values[2][0].startswith(BITS) == bits]


@pytest.mark.parametrize(("header", "rows", "files"), tables(True))
def test_bits_are_those_of_the_results_they_name(header, rows, files):
    results = pd.concat(pd.read_csv(DOCS / "measured" / file) for file in files)
    names = {spec.title: name for name, spec in specs().items()}
    for title, *cells in rows:
        for column, cell in zip(header[1:], cells, strict=True):
            part, layer = STAGES[column]
            found = results[
                (results["model"] == names[title]) & (results["part"] == part) & (results["layer"] == layer)
            ]
            values = found["value"].tolist()
            assert cell == (f"{mean(values):.2f} ± {stdev(values):.2f}" if values else "–"), f"{title}, {column}"


@pytest.mark.parametrize(("header", "rows", "files"), tables(False))
def test_tables_are_those_of_the_results_they_name(header, rows, files):
    results = pd.concat(pd.read_csv(DOCS / "measured" / file) for file in files)
    names = {spec.title: name for name, spec in specs().items()}
    ablation = "row" in results
    for title, *cells in (row for row in rows if not OTHER_ROWS.fullmatch(row[0])):
        scores = results[results["row"] == title] if ablation else results[results["model"] == names[title]]
        relation = ""
        for column, cell in zip(header[1:], cells, strict=True):
            if column.startswith(OTHER):
                continue
            relation = column.partition(", ")[0] if "/" in column else relation
            lowest_of = ablation and column in set(results["task"])
            right = lowest(scores, column) if lowest_of else expected(scores, column, relation)
            assert cell == right, f"{title}, {column}"


def test_every_file_of_results_is_named():
    """And some tables are checked."""
    named = {file for param in all_tables() for file in param.values[2]}
    assert named == {file.name for file in (DOCS / "measured").glob("*.csv")} != set()
