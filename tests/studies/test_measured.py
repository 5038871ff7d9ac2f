"""The tables of README, docs/results and docs/archive against the results that they are of, where docs/measured
keeps these; what is claimed in short against the section that it is from."""

import re
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest

from menagerie.models.registry import specs
from menagerie.studies.ledger.claim_file import read_claims
from menagerie.studies.ledger.table import PUBLISHED, kept_rows
from menagerie.studies.published.blocks import filled, pages_of_docs
from menagerie.studies.published.pack import published_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = DOCS / "measured"
LINK = re.compile(r"\((?:docs/|\.\./)?measured/([\w-]+\.csv)\)")
FILLED = re.compile(r"<!-- csv ([\w-]+\.csv)")  # a block with the table of a file
RESULTS = sorted((DOCS / "results").glob("*.md"))
CHECKED = (*RESULTS, DOCS / "archive.md", *(DOCS / "archive").glob("*.md"))
# How columns begin whose numbers are not of these files, and rows.
OTHER = ("search", "parameters", "CPU", "above CLIP", "above OC-CLIP", "alpha", "what changes", "opposite in the batch")
OTHER_ROWS = {"difference, 95 % interval"}
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
        elif lines and (files := LINK.findall(line)):
            starts = [i - 1 for i, cells in enumerate(lines) if all(cell.strip("-") == "" for cell in cells)]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                yield lines[start], lines[start + 2 : end], files
            lines = []


def all_tables():
    """The tables of all pages. README has a column for each model."""
    for page in CHECKED:
        for header, rows, files in measured_tables(page):
            yield pytest.param(header, rows, files, id=f"{page.stem} {files[0]} {header[1]}")
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
STAGES = {
    "all patches": ("image", "tokens"),
    "image embedding": ("image", "embedding"),
    "text embedding": ("text", "embedding"),
}
STAGES["score"] = ("image and text", "score")


PRINTED = "printed-"  # how files begin that are a table of a study's page, cell by cell
COVERAGE = "coverage-of-intervals.csv"  # whose table is in docs/reports.md


def bits_cell(results, names, title, column, _):
    part, layer = STAGES[column]
    found = results[(results["model"] == names[title]) & (results["part"] == part) & (results["layer"] == layer)]
    values = found["value"].tolist()
    return f"{mean(values):.2f} ± {stdev(values):.2f}" if values else "–"


def accuracy_cell(results, names, title, column, relation):
    """That of a model's tests, or of a row of an ablation, which has the lowest test of a task."""
    ablation = "row" in results
    scores = results[results["row"] == title] if ablation else results[results["model"] == names[title]]
    lowest_of = ablation and column in set(results["task"])
    return lowest(scores, column) if lowest_of else expected(scores, column, relation)


@pytest.mark.parametrize(("header", "rows", "files"), [*all_tables()])
def test_tables_of_docs_are_those_of_the_results_they_name(header, rows, files):
    if files[0].startswith(PRINTED):
        printed = pd.read_csv(DOCS / "measured" / files[0], dtype=str, keep_default_na=False)[header]
        plain = printed.map(lambda cell: cell.replace("−", "-")).to_numpy().tolist()
        assert [[cell.replace("−", "-") for cell in row] for row in rows] == plain
        assert any(f"<!-- csv {files[0]}" in page.read_text() for page in CHECKED)
        return
    results = pd.concat(pd.read_csv(DOCS / "measured" / file, dtype={"objects": str}) for file in files)
    names = {spec.title: name for name, spec in specs().items()}
    cell_of = bits_cell if files[0].startswith(BITS) else accuracy_cell
    for title, *cells in (row for row in rows if row[0] not in OTHER_ROWS):
        relation = ""
        for column, cell in zip(header[1:], cells, strict=True):
            if not column.startswith(OTHER):
                relation = column.partition(", ")[0] if "/" in column else relation
                assert cell == cell_of(results, names, title, column, relation), f"{title}, {column}"


@pytest.mark.parametrize("page", [*pages_of_docs(MEASURED)], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_of_docs_repeat_what_is_kept(page):
    assert filled(page, MEASURED) == page.read_text()


def test_every_published_run_has_a_page_that_docs_name():
    published = {*published_names(MEASURED / "records")}
    texts = "".join(page.read_text() for page in pages_of_docs(MEASURED))
    named = set(re.findall(r"measured/([\w-]+)/page\.md\)", texts))
    assert named == {path.parent.name for path in MEASURED.glob("*/page.md")} == published != set()


def test_verdicts_are_of_the_claims_as_they_ship():
    kept = {path.parent.name: kept_rows(path) for path in MEASURED.glob("*/verdict.csv")}
    assert kept.keys() == {name for name in published_names(MEASURED / "records") if name.startswith(PUBLISHED)}
    digests = {PUBLISHED + file.name: file.digest for file in read_claims(())}
    assert {name: row.digest for name, (row,) in kept.items()}.items() <= digests.items()


NUMBER = re.compile(r"[+−]?\d+(?:\.\d+)?")
# Short claims: the rows of the table that results begin with, and README's findings, with the section they link to.
CLAIMS = {
    DOCS / "results.md": re.compile(r"^\| .*\(results/(\w+\.md#[\w-]+)\) \|$", re.MULTILINE),
    ROOT / "README.md": re.compile(r"^- .*\(docs/results/(\w+\.md#[\w-]+)\)\)\.$", re.MULTILINE),
}


def numbers(text):
    """Those that a reader sees, without the plus of differences."""
    return {number.lstrip("+") for number in NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))}


def sections():
    """The numbers under each heading of results, by page and anchor."""
    found = {}
    for page in RESULTS:
        _, *parts = re.split(r"^##+ (.*)$", page.read_text(), flags=re.MULTILINE)
        anchors = (re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in parts[::2])
        places = (f"{page.name}#{anchor}" for anchor in anchors)
        found |= dict(zip(places, map(numbers, parts[1::2]), strict=True))
    return found


def claims(page):
    """The numbers of each short claim, and its section."""
    return [(numbers(found[0]), found[1]) for found in CLAIMS[page].finditer(page.read_text())]


@pytest.mark.parametrize("page", CLAIMS)
def test_claims_repeat_numbers_of_their_sections(page):
    known, found = sections(), claims(page)
    assert len(found) >= 5
    assert {section: more for said, section in found if (more := said - known[section])} == {}


def test_every_file_of_results_is_named():
    """And some tables are checked."""
    named = {file for param in all_tables() for file in param.values[2]} | {COVERAGE}
    named |= {file for page in CHECKED for file in FILLED.findall(page.read_text())}
    assert named == {file.name for file in (DOCS / "measured").glob("*.csv")} != set()


def test_the_table_of_intervals_is_of_its_file():
    """The least share that holds, and the greatest width; an interval that isn't for new pairs says so."""
    cells = pd.read_csv(DOCS / "measured" / COVERAGE).groupby(["pairs_are", "seeds", "pairs"], sort=False)
    rows = [
        line.strip("|").split("|")
        for line in (DOCS / "reports.md").read_text().splitlines()
        if line[0:1] == "|" and "(1." in line
    ]
    assert len(rows) == len(cells) == 12
    for row, ((own, seeds, pairs), part) in zip(rows, cells, strict=True):
        of = part.groupby("accuracy")
        held = [f"{100 * low:.1f} ({width:.2f})" for low, width in zip(of.holds.min(), of.width.max(), strict=True)]
        these = ", for these" * (set(part.interval_for) == {"these pairs"})
        before = [f"{100 * low:.1f}" for low in of.before_holds.min()]
        assert [cell.strip() for cell in row] == [f"{own}{these}", str(seeds), str(pairs), *held, *before]
        assert part.holds.min() > 0.887
        assert part.width[part.interval_for == "new pairs"].max() < 1.5 or these
