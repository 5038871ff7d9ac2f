"""Estimates with their intervals, for new seeds and new animal pairs.

Records of one animal pair are correlated, in all seeds that test it; so are all records of one seed, which decides
training and mostly the split. So the variance of a mean is that of seeds (S) plus that of pairs (P), minus that of the
pairs of single seeds (C), which both contain: the two-way clustered variance of Cameron, Gelbach and Miller (2011,
"Robust inference with multiway clustering"). If each seed has pairs of its own, P equals C, and S is left. Negative
values of S - C and P - C count as 0. Student's quantile has Satterthwaite's degrees of freedom with three changes,
found by simulation (docs/reports.md, tests/studies/coverage.py):
- They are at least `LEAST_FREEDOM`: with two, as three seeds have, an interval would be twice as wide as with the true
  variance.
- Few seeds may agree by chance, so S is increased by C times sqrt(2 / (seeds - 1)), its standard deviation if seeds
  don't differ.
- P - C has a third of the freedom of a normal variance, because near 100 % a few hard pairs decide it.

Of few pairs that seeds share P - C is left out, and the interval is for these pairs (`is_for_own_pairs`). Pairs that
have an animal in common count as independent.

An accuracy has Jeffreys' interval for the effective number of independent records, which have the same variance (Korn
and Graubard 1998, "Confidence intervals for proportions with small expected number of positive counts"), so that an
accuracy of 100 % has a lower bound too. Any other statistic is evaluated at the two ends of the line through the means
that has its whole variance; for a weighted sum these are its value ± t standard errors.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from menagerie.studies.analysis.tables import DASH

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Summary

CONFIDENCE = 0.95
COVER = 90  # percent of intervals that cover the truth in simulations; slightly fewer in the worst case
# With fewer pairs that seeds share, an interval is for these pairs alone. In simulations at 98 % with very different
# pairs, intervals for new pairs cover the truth in 89 of 100 cases with 12 pairs, in 90 with 20.
MANY_SHARED = 20
LEAST_FREEDOM, PAIR_FREEDOM = 3.0, 1 / 3
STEP = 1e-3  # of each group's mean, for numerical derivatives of a statistic
RESAMPLES = 2000
FEWEST = 5  # with fewer animal pairs there is no interval, because two that agree would look certain
MANY_PAIRS = 12  # with so many pairs, even records that are all equal are conclusive
EQUAL = 1e-16  # a smaller variance is due to rounding
PARTS = 20  # of a jackknife; more take longer, and change Student's quantile little

Table = Float64[np.ndarray, "k v"]
"""Sums or numbers of the records of v groups in k clusters."""
Row = Float64[np.ndarray, " v"]
Names = Sequence[Hashable]
"""The seed, or the animal pair, of each cluster."""
Means = Float64[np.ndarray, "rows groups"]
Statistic = Callable[[Means], Float64[np.ndarray, " rows"]]
"""Maps rows of the means of groups, which are in the order of the plan, to a value each."""


class Estimate(NamedTuple):
    """A number with its interval. Bounds are nan if there is no interval, and infinite where one is unbounded."""

    value: float
    low: float
    high: float
    n: int
    """Number of records (of a paired difference, those whose animal pair both sides have), or of values."""
    clusters: int | None
    """Number of different animal pairs, in the group that has the fewest; 0 if no records are kept, as for four-way
    items; None for an interval to which pairs don't matter."""
    seeds: int
    """Number of seeds; of a rank correlation, of trainings."""
    deviation: float
    """Standard deviation of the seeds' own values; nan for one seed."""
    signed: bool = False
    """Whether the number is written with its sign, as a difference is."""
    times: int = 100
    """By what the number is multiplied when it is printed: 100 prints a share in percent."""
    digits: int = 1
    p: float = math.nan
    """Two-sided p value of the hypothesis that the number is 0; nan if none is computed."""
    decides: float = math.nan
    """Of a paired difference the smallest one that 80 of 100 such studies would decide (`power`); nan if unknown."""

    @property
    def lacks(self) -> str:
        """Why there is no interval; empty if there is one."""
        if self.clusters is not None:
            return without_interval(self.low, self.high, self.clusters, self.seeds)
        return "no interval" if math.isnan(self.low) else "no spread: no interval" if self.low == self.high else ""

    @property
    def bounds(self) -> str:
        """The interval as text, or why there is none."""
        return self.lacks or f"{self.written(self.low)}, {self.written(self.high)}"

    @property
    def known(self) -> bool:
        return not self.lacks

    @property
    def conclusive(self) -> bool:
        """Whether there is an interval that can decide on which side of a value the number lies. One of zero width
        needs `MANY_PAIRS` animal pairs: fewer may agree by chance."""
        return self.known or ((self.clusters or 0) >= MANY_PAIRS and not math.isnan(self.low))

    @property
    def decides_from(self) -> str:
        return DASH if math.isnan(self.decides) else f"{self.times * self.decides:.{self.digits}f}"

    def written(self, number: float) -> str:
        return f"{self.times * number:{'+' if self.signed else ''}.{self.digits}f}"

    def __str__(self) -> str:
        if math.isnan(self.value):
            return DASH
        alone = self.clusters is None and self.seeds < 2  # the mean of a single number
        return self.written(self.value) + ("" if alone else f" [{self.bounds}]")


NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0, math.nan)


def without_interval(low: float, high: float, pairs: int, seeds: int = 2) -> str:
    """Return the reason that replaces an interval without information; empty for other intervals. One of zero width
    has none: it would look like perfect certainty. `pairs` and `seeds` are those of the group with the fewest."""
    if pairs < FEWEST:
        return "one animal pair: no interval" if pairs == 1 else f"only {pairs} pairs: no interval"
    if math.isnan(low):
        return "only 2 seeds: no interval" if seeds == 2 else "no interval"
    return "no spread: no interval" if low == high else ""


def explain_intervals(seeds: int) -> str:
    """Write for reports what intervals of so many seeds are for, and how often they cover it in simulations."""
    intervals_of = f"Intervals (nominally {100 * CONFIDENCE:.0f} %)"
    none = f"A test of fewer than {FEWEST} animal pairs has none."
    if seeds == 2:
        return "Two seeds are too few for an interval; with three there is one."
    if seeds < 2:
        return f"{intervals_of} are for new animal pairs with this seed, not for new seeds. {none}"
    return (
        f"{intervals_of} are for the mean of new seeds (new training runs, on new splits if each seed has its own) and "
        f"new animal pairs; there are {seeds} seeds here. Those of a test with fewer than {MANY_SHARED} pairs, which "
        "seeds share, are for new seeds and for these pairs, not for new ones. In simulations about "
        f"{COVER} of 100 or more cover it. {none}"
    )


def mean_over_seeds(values: Sequence[float], least: float = 0.0, most: float = 1.0) -> Estimate:
    """Return the mean of a number of each seed, with Student's interval cut at `least` and `most`."""
    from scipy.special import stdtrit

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Estimate(mean, math.nan, math.nan, n, None, n, math.nan)
    deviation = float(np.std(values, ddof=1))
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(n)
    return Estimate(mean, max(least, mean - half), min(most, mean + half), n, None, n, deviation)


def is_for_own_pairs(counts: Table, pairs: Names) -> Bool[np.ndarray, " v"]:
    """Whether a group's interval is for its own animal pairs alone: fewer than `MANY_SHARED`, each of two seeds or
    more."""
    number = count_different(counts, pairs)
    return (number < MANY_SHARED) & ((counts > 0).sum(0) >= 2 * number)


def count_different(counts: Table, names: Names) -> Int64[np.ndarray, " v"]:
    return (membership(names) @ (counts > 0).astype(float) > 0).sum(0)


def membership(names: Names) -> Float64[np.ndarray, "g k"]:
    """Return 1 where a cluster (of k) has a name (of g), else 0."""
    of = np.unique([str(name) for name in names], return_inverse=True)[1]
    return (of == np.arange(of.max() + 1)[:, None]).astype(float)


class Spread(NamedTuple):
    """The variance of each of v estimates, and Student's quantile for it."""

    variance: Row
    student: Row
    weights: Float64[np.ndarray, "3 v"]

    @classmethod
    def of(cls, rest: Table, present: Bool[np.ndarray, "k v"], seeds: Names, pairs: Names) -> "Spread":
        """Compute it from the contribution of each cluster to the errors of the estimates; `present` says which
        clusters each estimate has."""
        from scipy.special import stdtrit

        there = present.astype(float)
        n, g = count_different(there, seeds) - 1, count_different(there, pairs) - 1
        found = by_seed, by_pair, both = variance_components(rest, rest, present, seeds, pairs)
        count = np.stack([by_seed > both, (by_pair > both) & ~is_for_own_pairs(there, pairs)])
        its = cls(both, both, np.concatenate([count, [1.0 - count.sum(0)]]))
        parts = np.stack([*(count * (found[:2] - both)), both])
        parts[0] += np.where(n > 0, both * np.sqrt(2 / np.maximum(n, 1)), 0)
        free = np.maximum(np.stack([n, g * PAIR_FREEDOM, there.sum(0) - 1]), PAIR_FREEDOM)
        squares = (parts**2 / free).sum(0)
        free = np.divide(parts.sum(0) ** 2, squares, out=free[2].copy(), where=squares > 0)
        student = stdtrit(np.maximum(free, LEAST_FREEDOM), (1 + CONFIDENCE) / 2)
        return cls(its.total(found), student, its.weights)

    def total(self, found: Float64[np.ndarray, "3 w"]) -> Float64[np.ndarray, " w"]:
        """Return the weighted sum of components of variances, or of covariances with an estimate."""
        return (self.weights * found).sum(0)


def variance_components(
    left: Float64[np.ndarray, "k v"],
    right: Float64[np.ndarray, "k w"],
    present: Bool[np.ndarray, "k w"],
    seeds: Names,
    pairs: Names,
) -> Float64[np.ndarray, "3 v"]:
    """Return the covariances of estimates by seeds, by pairs, and by the pairs of single seeds (centred over the seeds
    of a pair), from the contributions of k clusters. `right` has a column for each of `left`, or one for all."""
    of_seed, of_pair, there = membership(seeds), membership(pairs), present.astype(float)
    n, g, runs = count_different(there, seeds), count_different(there, pairs), of_pair @ there
    apart = [each - of_pair.T @ np.where(runs > 1, of_pair @ each / np.maximum(runs, 1), 0) for each in (left, right)]
    lost = of_pair.T @ np.where(runs > 1, runs / np.maximum(runs - 1, 1), 1)
    few = g / np.maximum(g - 1, 1)
    return np.stack(
        [
            ((of_seed @ left) * (of_seed @ right)).sum(0) * np.where(n > 1, n / np.maximum(n - 1, 1), 0),
            ((of_pair @ left) * (of_pair @ right)).sum(0) * few,
            (apart[0] * apart[1] * there * lost).sum(0) * few,
        ]
    )


def accuracy_intervals(sums: Table, counts: Table, seeds: Names, pairs: Names) -> Float64[np.ndarray, "2 v"]:
    """Intervals of v accuracies, shares from 0 to 1. NaN where `has_interval` is False.

    The effective number of records is at most their number; for this bound the share has Agresti and Coull's two more
    right and two more wrong records. If all clusters are equal, the correlation within them is unknown: then the
    effective number is the geometric mean of the numbers of records and of clusters.
    """
    from scipy.special import betaincinv, ndtri  # scipy.stats has the same under other names, and takes a second

    n = np.maximum(counts.sum(0), 1)
    share, smooth = sums.sum(0) / n, (sums.sum(0) + 2) / (n + 4)
    its = Spread.of((sums - counts * share) / n, counts > 0, seeds, pairs)
    worth = np.minimum(n, smooth * (1 - smooth) / np.maximum(its.variance, EQUAL))
    worth = np.where(its.variance < EQUAL, np.sqrt(n * (counts > 0).sum(0)), worth)
    worth = worth * (ndtri((1 + CONFIDENCE) / 2) / its.student) ** 2
    right, tail = worth * np.clip(share, 0, 1), (1 - CONFIDENCE) / 2
    low, high = (betaincinv(right + 0.5, worth - right + 0.5, end) for end in (tail, 1 - tail))
    ends = [np.where(share <= 0, 0, np.minimum(low, share)), np.where(share >= 1, 1, np.maximum(high, share))]
    return np.where(has_interval(counts, seeds, pairs), ends, np.nan)


def statistic_interval(
    statistic: Statistic, sums: Table, counts: Table, seeds: Names, pairs: Names
) -> tuple[float, float]:
    """Return the interval of a statistic of the means of v groups, by the delta method. NaN if a group has none; of
    zero width if the statistic doesn't change with the means."""
    if not has_interval(counts, seeds, pairs).all():
        return math.nan, math.nan
    whole, steps = sums.sum(0) / counts.sum(0), STEP * np.eye(sums.shape[1])
    slopes = (statistic(whole + steps) - statistic(whole - steps)) / (2 * STEP)
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    rest = (sums - counts * whole) / counts.sum(0)
    own, used = (rest @ slopes)[:, None], (counts[:, slopes != 0] > 0).any(1, keepdims=True)
    its = Spread.of(own, used, seeds, pairs)
    value = float(statistic(whole[None])[0])
    if its.variance[0] < EQUAL:
        return value, value
    along = its.total(variance_components(rest, own, used, seeds, pairs)) * its.student / np.sqrt(its.variance)
    low, high = statistic(np.stack([whole - along, whole + along])).tolist()
    return min(low, value), max(high, value)


def resampled_means(sums: Table, counts: Table, seeds: Names, pairs: Names) -> Float64[np.ndarray, "r v"]:
    """Draw the means of v groups `RESAMPLES` times, for discontinuous statistics. Each seed and each pair has a normal
    factor that all groups share; draws of a group have its variance and Student's quantile."""
    from scipy.special import ndtri

    whole, rng = sums.sum(0) / counts.sum(0), np.random.default_rng(0)
    rest = (sums - counts * whole) / counts.sum(0)
    its = Spread.of(rest, counts > 0, seeds, pairs)
    parts = np.concatenate([membership(names) @ rest for names in (seeds, pairs)])
    width, drawn = np.sqrt(its.variance) * its.student / ndtri((1 + CONFIDENCE) / 2), np.sqrt((parts**2).sum(0))
    scale = np.divide(width, drawn, out=np.zeros_like(width), where=drawn > 0)
    return whole + rng.normal(size=(RESAMPLES, len(parts))) @ (parts * scale)


def has_interval(counts: Table, seeds: Names, pairs: Names) -> Bool[np.ndarray, " v"]:
    """Whether each group gets an interval: it needs at least `FEWEST` different animal pairs, and one seed or more than
    two, because Student's interval of two seeds would reach 13 standard errors to each side."""
    return (count_different(counts, pairs) >= FEWEST) & (count_different(counts, seeds) != 2)


def jackknife_intervals(
    clusters: Sequence[Hashable], numbers: "Callable[[Sequence[int]], Mapping[str, Summary]]"
) -> dict[str, tuple[float, float]]:
    """Return intervals, nominally of 95 %, of official accuracies, which may be means over groups or over sets that are
    right only as a whole. `numbers` computes them for the records at some indices.

    A delete-a-group jackknife (Kott 2001, "The delete-a-group jackknife", J. Official Statistics 17, section 2). The
    intervals are for new records and the same model. A number has none if it is undefined, whole or without a part; if
    fewer than `FEWEST` parts have records of it; or if leaving parts out never changes it.
    """
    from scipy.special import stdtrit

    order = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    assigned = np.random.default_rng(0).permutation(len(order)) % PARTS
    part = assigned[[order[cluster] for cluster in clusters]]
    whole = numbers(range(len(clusters)))
    without = [numbers(np.flatnonzero(part != number).tolist()) for number in range(min(PARTS, len(order)))]
    found = {}
    for name, its in whole.items():
        others = [one[name].official for one in without if name in one and one[name].n != its.n]
        if its.official is None or len(others) < FEWEST or None in others:
            continue
        squares = ((np.array(others, np.float64) - its.official) ** 2).sum()
        half = stdtrit(len(others) - 1, (1 + CONFIDENCE) / 2) * np.sqrt((1 - 1 / len(others)) * squares)
        if half:
            low, high = np.clip([its.official - half, its.official + half], 0, 1).tolist()
            found[name] = (low, high)
    return found
