"""What a paper says of its parts, beside what came out on our world."""

from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.papers import Claim, ablations_of
from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.runs import Runs
from menagerie.studies.ablation.tables import against_base, column_name
from menagerie.studies.analysis.paired_bootstrap import Difference
from menagerie.studies.analysis.tables import gap

# Columns of a claim: the sign of the difference by which it would be right, and what came out.
OUTCOME = ("on our world", "expected")
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# What may come out of a claim, in the words of reports.
VERDICTS = {
    "confirmed": "the interval leaves out 0, on the side that is expected after the paper",
    "contradicted": "the interval leaves out 0, on the other side",
    "undecided": "the interval holds 0, or there is none, or two measures differ in sign: these records don't tell",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}


def claim_row(done: Runs, claim: Claim, base: str) -> tuple[str, ...]:
    """What a paper says, the row that tests it, the columns that are pooled for that, and what came out."""
    tests = ", ".join(column_name(*column) for column in claim.columns)
    outcome, delta = verdict(done, claim, base)
    return claim.text, claim.row, f"{claim.split}: {tests}", outcome, EXPECTED[claim.sign], delta


def verdict(done: Runs, claim: Claim, base: str) -> tuple[str, str]:
    """Whether the interval of the difference is on the claim's side of 0, and the difference."""
    delta = against_base(done, Place(claim.split, claim.row), claim.columns, base)
    return judged(delta, claim.sign), str(delta or gap(done.get(Place(claim.split, claim.row), True)))


def judged(delta: Difference | None, sign: int) -> str:
    """Whether the interval of a difference is on one side of 0, and whether that is the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.mean > 0) == (sign > 0) else "contradicted"


def claimed(spec: ScorerSpec, split: str) -> list[tuple[str, str]]:
    """The columns that claims are tested on."""
    return [column for claim in ablations_of(spec).claims if claim.split == split for column in claim.columns]
