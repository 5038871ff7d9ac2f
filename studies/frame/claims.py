"""What runs say of claims and of factors: verdicts by the intervals of differences, and effects in two-level designs.

For up to four factors, all combinations are run. For five or more it is half of them, those in which the product of all
signs is 1 (Box and Hunter 1961, "The 2^(k-p) fractional factorial designs"): an effect of j of k factors can't be
separated from the interaction of the k - j others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.intervals import Estimate
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.arm import as_column
from menagerie.studies.frame.parts import Chart, Part, Rows, Sentence
from menagerie.studies.frame.records import TESTS, Records

HEADER = (
    *("claim", "compared", "tests, their records pooled", "decided", "difference in points, with its interval"),
    "decides from",
)
OUTCOMES = """Confirmed or contradicted: the interval excludes 0. Undecided: it contains 0, or there is none, or two
measures differ in sign. Not testable: the model hasn't learnt its training data, which is 90 % of swaps right in new
views of scenes as training shows them. Not tested: a run that the claim needs isn't finished, or this study leaves it
out. Decides from: the difference that 80 of 100 studies with the spread of these runs would decide."""
LEARNT = 0.9  # accuracy on swaps of scenes as training shows them, in new views
ALL = 4  # factors of which all combinations are run
Signs = tuple[int, ...]
"""The level of each factor: -1 for the first, 1 for the second."""
Effect = tuple[str, ...]
"""The factors of an effect: one for a main effect, two for the interaction of a pair, more for higher interactions."""
Levels = Mapping[str, tuple[Any, Any]]
"""The two values of each factor, by the label that runs have for it."""
Found = Mapping[tuple[Any, ...], Mapping[Effect, Estimate]]
"""The effects for each combination of some labels, such as each model."""


class Verdict(NamedTuple):
    """A row of the table of claims."""

    claim: str
    row: str
    tests: str
    outcome: str
    """One of "confirmed", "contradicted", "undecided", "not testable", "not tested"."""
    difference: str
    decides: str = DASH


def make_verdict(claim: str, row: str, tests: str, delta: Estimate | None, sign: int) -> Verdict:
    """Make the verdict on a claim: whether the interval of the difference `delta` is on the claim's side of 0."""
    texts = (DASH, DASH) if delta is None else (str(delta), delta.decides_from)
    return Verdict(claim, row, tests, judge_difference(delta, sign), *texts)


def if_learnt(verdict: Verdict, accuracy: float) -> Verdict:
    """Return the verdict, as "not testable" if the model's `accuracy` says that it hasn't learnt its training data."""
    if accuracy >= LEARNT or verdict.outcome == "not tested":
        return verdict
    said = f"{verdict.difference}; only {100 * accuracy:.1f} % of swaps of scenes as in training are right"
    return verdict._replace(outcome="not testable", difference=said)


def judge_difference(delta: Estimate | None, sign: int) -> str:
    """Return the outcome: whether the interval of a difference is on one side of 0, and on the side of `sign`."""
    if delta is None:
        return "not tested"
    return {sign: "confirmed", -sign: "contradicted"}.get(sign_of_effect(delta), "undecided")


def sign_of_effect(its: Estimate) -> int:
    """1 for an effect or a difference whose interval is above 0, -1 for one whose interval is below, else 0."""
    return int(its.low > 0) - int(its.high < 0) if its.conclusive else 0


def points_above(its: Estimate, share: float) -> Estimate:
    """Return an accuracy minus `share`, as a difference with a sign."""
    return its._replace(value=its.value - share, low=its.low - share, high=its.high - share, signed=True)


def claim_parts(verdicts: Sequence[Verdict], says: str) -> Iterator[Part]:
    """Yield a sentence with the number of claims of each outcome, and the table of claims; `says` is its text."""
    if verdicts:
        counts = Counter(its.outcome for its in verdicts)
        yield Sentence(f"Of {len(verdicts)} claims: {', '.join(f'{n} {name}' for name, n in counts.items())}.")
        yield Rows("claims", HEADER, verdicts, says=f"{says} {OUTCOMES}")


def design(factors: int) -> list[Signs]:
    if factors <= ALL:
        return list(product((-1, 1), repeat=factors))
    return [(*signs, prod(signs)) for signs in product((-1, 1), repeat=factors - 1)]


def effects(factors: Sequence[str], most: int = 2) -> Iterator[Effect]:
    """Yield the main effect of each factor, then the interactions of two factors, up to those of `most`."""
    for size in range(1, most + 1):
        yield from combinations(factors, size)


def contrasts(records: Records, levels: Levels, by: Sequence[str] = ("model",), most: int = 2) -> Found:
    """Estimate every effect of up to `most` factors on the records of one test, for each combination of the labels
    `by`, over the seeds for which all runs are finished.

    An effect is the mean of the runs in which the product of its factors' signs is 1, minus the mean of the others.
    Intervals are those of paired differences. Raises `UserError` if runs were tested by different records.
    """
    from menagerie.studies.frame.estimate import KEY, estimate

    runs, points, found = len(design(len(levels))), records.points, {}
    for key, part in points.groupby(list(by), sort=False) if len(points) else ():
        labels = {name: value for name, value in zip(by, key, strict=True) if name not in TESTS}
        seeds = Counter(arm.cell.seed for arm, _ in records.results if labels.items() <= arm.place.items())
        part = part[part["seed"].isin([seed for seed, finished in seeds.items() if finished == runs])]
        signs = {name: part[name].eq(as_column(both[1])) * 2 - 1 for name, both in levels.items()}
        for effect in effects(tuple(levels), most) if len(part) else ():
            signed = part.assign(value=part["value"] * prod(signs[name] for name in effect))
            sums = signed.groupby([*KEY, "animals"], sort=False)["value"].agg(["sum", "size"])
            if not sums["size"].eq(runs).all():
                raise UserError(f"{records.out}: runs of {key} were tested by different records: no effect is known")
            its = sums["sum"].mul(2 / runs).rename("value").reset_index()
            found.setdefault(key, {})[effect] = estimate(its, signed=True)
    return found


def clear_effects(found: Mapping[Effect, Estimate], words: Callable[[Effect], str]) -> str:
    said = [f"{words(effect)} {its}" for effect, its in found.items() if sign_of_effect(its)]
    return f"clear effects in points: {', '.join(said) or 'none'}"


def effect_parts(
    name: str, found: Found, by: Sequence[str], words: Callable[[Effect], str], says: str = ""
) -> Iterator[Part]:
    """Yield a figure of all effects by the labels `by`, and the same as a table. Those without a certain sign are
    grey."""
    if not found:
        return
    import altair as alt
    import pandas as pd

    rows = [(key, words(effect), its) for key, of_key in found.items() for effect, its in of_key.items()]
    numbers = [
        (
            ", ".join(map(str, key)),
            effect,
            *(100 * end for end in its[:3]),
            bool(sign_of_effect(its)),
            its.clusters,
            its.seeds,
        )
        for key, effect, its in rows
    ]
    frame = pd.DataFrame(numbers, columns=["panel", "effect", "value", "low", "high", "clear", "clusters", "seeds"])
    color = alt.condition("datum.clear", alt.value("#4477aa"), alt.value("#999999"))
    base = alt.Chart().encode(alt.Y("effect:N", sort=None, title=None), color=color)
    dots = base.mark_circle(size=50).encode(alt.X("value:Q", title="effect in percentage points"))
    lines = base.mark_rule().encode(alt.X("low:Q"), alt.X2("high:Q"))
    zero = alt.Chart().mark_rule(color="#666666").encode(x=alt.datum(0))
    layers = alt.layer(zero, lines, dots, data=frame).properties(width=180)
    yield Chart(name, layers.facet(alt.Facet("panel:N", title=None), columns=3), says=says)
    texts = [(*map(str, key), effect, str(its), str(its.seeds)) for key, effect, its in rows]
    yield Rows(name, (*by, "effect", "points", "seeds"), texts)
