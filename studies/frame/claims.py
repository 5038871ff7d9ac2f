"""Claims, each judged by the interval of a difference, in one table."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from menagerie.studies.frame.parts import Facts, Heading, Part, Rows

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

NOTHING = "–"  # there is no difference
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# The possible verdicts on a claim, in the words of reports.
OUTCOMES = {
    "confirmed": "the interval excludes 0, on the side that the claim lets expect",
    "contradicted": "the interval excludes 0, on the other side",
    "undecided": "the interval contains 0, or there is none, or two measures differ in sign",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}
HEADER = ("claim", "compared", "tests, their records pooled", "decided", "expected")


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
    """The difference with its interval."""


def make_verdict(claim: str, row: str, tests: str, delta: "Estimate | None", sign: int) -> Verdict:
    """Make the verdict on a claim: whether the interval of the difference `delta` is on the claim's side of 0."""
    outcome = judge_difference(delta, sign)
    return Verdict(claim, row, tests, outcome, EXPECTED[sign], NOTHING if delta is None else str(delta))


def judge_difference(delta: "Estimate | None", sign: int) -> str:
    """Return one of `OUTCOMES`: whether the interval of a difference is on one side of 0, and on the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.value > 0) == (sign > 0) else "contradicted"


def points_above(its: "Estimate", share: float) -> "Estimate":
    """Return an accuracy minus `share`, as a difference with a sign."""
    return its._replace(value=its.value - share, low=its.low - share, high=its.high - share, signed=True)


def claims_section(verdicts: Sequence[Verdict], measured: str, text: str) -> Iterator[Part]:
    """Yield the section of claims; `measured` heads the column of differences, `text` says what these are."""
    if verdicts:
        yield Heading("What the paper says, here", text)
        yield Facts(OUTCOMES)
        yield Rows("claims", (*HEADER, f"measured: {measured}"), verdicts)


def outcomes_sentence(verdicts: Sequence[Verdict], source: str = "the paper") -> str:
    """Write a sentence with the number of claims of each outcome."""
    counts = {name: sum(its.outcome == name for its in verdicts) for name in OUTCOMES}
    listed = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"Of {len(verdicts)} claims of {source}: {listed}."
