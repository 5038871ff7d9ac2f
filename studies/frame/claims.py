"""Compares claims of papers with the records of a study, and makes tables of studies whose runs have a label `row`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import NamedTuple

from menagerie.envs.core.files import write_csv
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.studies.analysis.tables import DASH, WAITING, number_text, task_order
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Facts, Heading, Part, Rows
from menagerie.studies.frame.records import Records, result_rows
from menagerie.studies.runs.data import CellData

Columns = Sequence[tuple[str, str]]
"""Subset and task of each column."""
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# The possible verdicts on a claim, in the words of reports.
OUTCOMES = {
    "confirmed": "the interval excludes 0, on the side that the paper lets expect",
    "contradicted": "the interval excludes 0, on the other side",
    "undecided": "the interval contains 0, or there is none, or two measures differ in sign",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}
HEADER = ("claim", "row", "tests, their records pooled", "on our world", "expected")
LOWEST = "lowest of all"
UNTESTED = {"validation", "train_pairs"}  # settings are chosen on the first, training has the scenes of the second
COLUMNS_OF_SCORES = ("split", "row", "seed", "subset", "task", "accuracy", "n")
# Kind of split -> subset and task of each column. A row's difference is of the first.
COLUMNS: dict[str, Columns] = {
    "spatial": (
        ("left_right_unseen_order", "swap"),
        ("above_under_unseen_order", "swap"),
        ("left_right_unseen_pairs", "swap"),
        ("above_under_unseen_pairs", "swap"),
        ("left_right_seen_order", "swap"),
        ("above_under_seen_order", "swap"),
    ),
    "binding": (
        ("unseen_pairs", "swap"),
        ("seen_pairs", "swap"),
        ("unseen_pairs", "replace texture"),
        ("unseen_pairs", "one animal"),
    ),
}


class Verdict(NamedTuple):
    """A row of the table of claims."""

    claim: str
    row: str
    """What the claim is about, by its name in the tables."""
    tests: str
    """The tests whose records are pooled."""
    outcome: str
    """One of `OUTCOMES`."""
    expected: str
    """The sign that the difference has if the claim is right."""
    difference: str


def make_verdict(claim: str, row: str, tests: str, delta: Estimate | None, sign: int, missing: str = DASH) -> Verdict:
    """Make the verdict on a claim: whether the interval of the difference `delta` is on the claim's side of 0.
    `missing` replaces a difference of None."""
    return Verdict(
        claim, row, tests, judge_difference(delta, sign), EXPECTED[sign], missing if delta is None else str(delta)
    )


def points_above(its: Estimate, share: float) -> Estimate:
    """Return an accuracy minus `share`, as a difference with a sign."""
    return its._replace(value=its.value - share, low=its.low - share, high=its.high - share, signed=True)


def judge_difference(delta: Estimate | None, sign: int) -> str:
    """Return one of `OUTCOMES`: whether the interval of a difference is on one side of 0, and on the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.value > 0) == (sign > 0) else "contradicted"


def column_name(subset: str, task: str) -> str:
    """Write a test in words: its subset, and its task unless that is swap."""
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def tests_in_words(columns: Iterable[tuple[str, str]]) -> str:
    """Name the tests whose records are pooled."""
    return ", ".join(column_name(*column) for column in columns)


def estimates_above(records: Records, columns: Columns, base: str) -> dict[str, Estimate]:
    """Estimate how much more accurate each row is than the row `base`, over all records of `columns`."""
    found = records.where(test=tuple(columns)).estimates(("row",), {"row": base})
    return {row: delta for (row,), delta in found.items()}


def claims_section(verdicts: Sequence[Verdict], measured: str, text: str) -> Iterator[Part]:
    """Yield the section of claims; `measured` heads the column of differences, `text` says what these are."""
    if verdicts:
        yield Heading("What the paper says, here", text)
        yield Facts(OUTCOMES)
        yield Rows("claims", (*HEADER, f"measured: {measured}"), [tuple(its) for its in verdicts])


def outcomes_sentence(verdicts: Sequence[Verdict], source: str = "the paper") -> str:
    """Write a sentence with the number of claims of each outcome."""
    counts = {name: sum(its.outcome == name for its in verdicts) for name in OUTCOMES}
    listed = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"Of {len(verdicts)} claims of {source}: {listed}."


def table_columns(data: CellData) -> Columns:
    """Return subset and task of each column of a split's table. Tests of hold-out rules come last."""
    usual = COLUMNS.get(data.kind, tuple((test, "swap") for test in data.tests))
    rules = tuple((test, "swap") for test in data.tests if test.startswith(HELD_OUT))
    return tuple(column for column in usual if column[0] in data.tests and column not in rules) + rules


def write_scores(name: str, records: Records) -> None:
    """Write every accuracy of every run to the CSV file `name`."""
    rows = ({"split": arm.cell.data.kind} | row for arm, result in records.results for row in result_rows(arm, result))
    write_csv(records.out / name, COLUMNS_OF_SCORES, ([row[name] for name in COLUMNS_OF_SCORES] for row in rows))


def missing_row_sign(records: Records, row: str, base: str) -> str:
    """Return the sign for a missing difference between two rows: its runs aren't finished, or it can't be computed."""
    done = {arm.labels["row"] for arm, _ in records.results}
    known = {arm.labels["row"] for arm in records.arms}
    return WAITING if row in known and not {row, base} <= done else DASH


def differences_above(records: Records, rows: Iterable[str], columns: Columns, base: str) -> dict[tuple[str, ...], str]:
    """Write how far each row is above `base` in the first column, or the sign for a missing difference."""
    found = estimates_above(records, columns[:1], base)
    return {(row,): str(found.get(row) or missing_row_sign(records, row, base)) for row in rows if row != base}


def lowest_by_task(name: str, records: Records, rows: Iterable[str]) -> Rows:
    """Make a table with the lowest accuracy of each row on each task, and the row's worst test and task by name. It
    counts only finished runs."""
    scores = records.scores[~records.scores["subset"].isin(UNTESTED)].dropna(subset="accuracy")
    means = 100 * scores.groupby(["row", "subset", "task"], sort=False)["accuracy"].mean()
    tasks = sorted({task for *_, task in means.index}, key=task_order)
    says = (
        "Every task, on the test where the row is worst at it; at the right the test and the task farthest from 100 %, "
        "by the part of the way from chance that is left. Mean over seeds."
    )
    lines = [(row, *task_line({key[1:]: its for key, its in means.items() if key[0] == row}, tasks)) for row in rows]
    return Rows(name, ("row", *tasks, LOWEST), lines, shaded=True, says=says)


def task_line(found: Mapping[tuple[str, str], float], tasks: Sequence[str]) -> list[str]:
    """Return the table cells of a row. `found` has the row's accuracies by test and task; a task may be missing for a
    test that has no records of it."""
    if not found:
        return [WAITING] * (len(tasks) + 1)
    lowest = [min((value for (_, its), value in found.items() if its == task), default=nan) for task in tasks]
    subset, task = min(found, key=lambda test: part_of_the_way(found[test], test[1]))
    return [*map(number_text, lowest), f"{subset.replace('_', ' ')}: {task} {found[subset, task]:.1f}"]


def part_of_the_way(accuracy: float, task: str) -> float:
    """Return how far an accuracy has got from chance (0) to 100 % (1)."""
    chance = CHANCES.get(task, 50.0)
    return (accuracy - chance) / (100 - chance)
