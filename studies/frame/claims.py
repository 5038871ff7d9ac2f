"""What papers claim, held against the records of a study: a verdict each, and the table of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.parts import Facts, Heading, Part, Rows
from menagerie.studies.frame.records import Records

Columns = Sequence[tuple[str, str]]
"""Subset and task of each."""
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# What may come out of a claim, in the words of reports.
OUTCOMES = {
    "confirmed": "the interval leaves out 0, on the side that is expected after the paper",
    "contradicted": "the interval leaves out 0, on the other side",
    "undecided": "the interval holds 0, or there is none, or two measures differ in sign: these records don't tell",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}
HEADER = ("claim", "row", "tests, their records pooled", "on our world", "expected")


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
    """The sign of the difference by which it would be right."""
    difference: str


def verdict(claim: str, row: str, tests: str, delta: Estimate | None, sign: int, missing: str = DASH) -> Verdict:
    """Whether the interval of a difference is on the claim's side of 0; `missing` is shown where there is none."""
    return Verdict(claim, row, tests, judged(delta, sign), EXPECTED[sign], missing if delta is None else str(delta))


def judged(delta: Estimate | None, sign: int) -> str:
    """Whether the interval of a difference is on one side of 0, and whether that is the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.value > 0) == (sign > 0) else "contradicted"


def column_name(subset: str, task: str) -> str:
    """A test in words: its subset, and its task but for swaps."""
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def tests_in_words(columns: Iterable[tuple[str, str]]) -> str:
    """The tests whose records are pooled."""
    return ", ".join(column_name(*column) for column in columns)


def above(records: Records, columns: Columns, base: str) -> dict[str, Estimate]:
    """How far each row is above the row `base`, over all records of some tests."""
    found = records.where(test=tuple(columns)).estimates(("row",), {"row": base})
    return {row: delta for (row,), delta in found.items()}


def claims(verdicts: Sequence[Verdict], measured: str, text: str) -> Iterator[Part]:
    """The section of claims; `measured` heads the column of differences, `text` says what these are."""
    if verdicts:
        yield Heading("What the paper says, here", text)
        yield Facts(OUTCOMES)
        yield Rows("claims", (*HEADER, f"measured: {measured}"), [tuple(its) for its in verdicts])


def sentence(verdicts: Sequence[Verdict]) -> str:
    """How many claims came out how."""
    counts = {name: sum(its.outcome == name for its in verdicts) for name in OUTCOMES}
    listed = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"Of {len(verdicts)} claims of the paper: {listed}."
