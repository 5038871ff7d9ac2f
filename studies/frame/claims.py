"""Claims, each judged by the interval of a difference, in one table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from menagerie.studies.frame.parts import Part, Rows, Sentence

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

NOTHING = "–"  # there is no difference
HEADER = ("claim", "compared", "tests, their records pooled", "decided", "difference in points, with its interval")
OUTCOMES = """Confirmed or contradicted: the interval excludes 0. Undecided: it contains 0, or there is none, or two
measures differ in sign. Not tested: a run that the claim needs isn't finished, or this study leaves it out."""


class Verdict(NamedTuple):
    """A row of the table of claims."""

    claim: str
    row: str
    """What is compared, by its names in the tables."""
    tests: str
    outcome: str
    """One of "confirmed", "contradicted", "undecided", "not tested"."""
    difference: str
    """The difference with its interval."""


def make_verdict(claim: str, row: str, tests: str, delta: "Estimate | None", sign: int) -> Verdict:
    """Make the verdict on a claim: whether the interval of the difference `delta` is on the claim's side of 0."""
    return Verdict(claim, row, tests, judge_difference(delta, sign), NOTHING if delta is None else str(delta))


def judge_difference(delta: "Estimate | None", sign: int) -> str:
    """Return the outcome: whether the interval of a difference is on one side of 0, and on the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.value > 0) == (sign > 0) else "contradicted"


def points_above(its: "Estimate", share: float) -> "Estimate":
    """Return an accuracy minus `share`, as a difference with a sign."""
    return its._replace(value=its.value - share, low=its.low - share, high=its.high - share, signed=True)


def claim_parts(verdicts: Sequence[Verdict], says: str) -> Iterator[Part]:
    """Yield a sentence with the number of claims of each outcome, and the table of claims; `says` is its text."""
    if verdicts:
        counts = Counter(its.outcome for its in verdicts)
        yield Sentence(f"Of {len(verdicts)} claims: {', '.join(f'{n} {name}' for name, n in counts.items())}.")
        yield Rows("claims", HEADER, verdicts, says=f"{says} {OUTCOMES}")
