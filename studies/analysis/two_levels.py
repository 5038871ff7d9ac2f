"""Intervals that cover new seeds and new animal pairs: a bootstrap of two levels, corrected for few seeds.

Records of one animal pair resemble each other, and so do all records of one seed, which decides split and training. So
seeds are drawn with replacement, and within each its animal pairs, whole. Without a correction, few seeds give wrong
intervals, too narrow or too wide: n resampled seeds spread less than n new ones (by (n - 1) / n, and by the difference
of Student's and the normal quantile), and if seeds don't differ, the pairs' contribution to the spread would count
twice. So the variance of seeds beyond what their pairs explain (an analysis of variance of two levels) is resampled,
widened to Student's quantile. For a statistic of several groups, such as the difference of two, it is the variance of
the statistic's own values: what groups share, such as hard pairs, is no difference between seeds of a gap.
`tests/studies/test_two_levels.py` simulates how often such intervals cover the truth, for any difference between seeds
(`FEW_COVER`, `MANY_COVER`). Pairs that share an animal count as independent within a seed; the simulation also measures
the effect of that.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float64, Int64

RESAMPLES = 2000
CONFIDENCE = 0.95
STEP = 1e-3  # of each group's mean, to find how a statistic depends on it
# With fewer clusters resampling can't be generalised: two that agree would look certain.
FEWEST = 5
# With at least this many pairs a seed, intervals cover about as often as they claim.
MANY_PAIRS = 12
# Least and greatest number, of 100 simulated intervals of 3 seeds or more, that cover the truth: for fewer than
# `MANY_PAIRS` pairs a seed, and for at least as many.
FEW_COVER, MANY_COVER = (87, 95), (91, 97)
METHOD = (
    "are by a bootstrap of two levels, which draws seeds and within them animal pairs; with few seeds they are wider, "
    "as Student's t is"
)


def without_interval(low: float, high: float, pairs: int, seeds: int = 2) -> str:
    """The text that replaces an uninformative interval, with the reason; empty for other intervals.

    An interval without width is uninformative: it would look like perfect certainty. `pairs` and `seeds` are those of
    the group that has the fewest; give `seeds` where two of them aren't the only other reason.
    """
    if pairs < FEWEST:
        return "one animal pair: no interval" if pairs == 1 else f"only {pairs} pairs: no interval"
    if math.isnan(low):
        return "only 2 seeds: no interval" if seeds == 2 else "no interval"
    return "no spread: no interval" if low == high else ""


def meaning(seeds: int, pairs: int) -> str:
    """Explain the intervals in sentences for reports: how they are made, and how often they cover the truth in
    simulations.

    `pairs` is the smallest number of animal pairs of a test in one seed (0 if it isn't known yet).
    """
    intervals_of = f"Intervals (nominally {100 * CONFIDENCE:.0f} %)"
    if seeds == 2:
        return "Two seeds are too few for an interval that would say something of new ones; three give one."
    if seeds < 2:
        return (
            f"{intervals_of} are by a bootstrap over the animal pairs of this one seed and say nothing of new seeds. "
            f"Fewer than {FEWEST} pairs have none."
        )
    low, high = MANY_COVER if pairs >= MANY_PAIRS else FEW_COVER
    short = (
        ""
        if pairs >= MANY_PAIRS
        else f"A test here has fewer than {MANY_PAIRS} pairs a seed: its intervals are too narrow. "
    )
    return (
        f"{intervals_of} {METHOD}. In simulations {low} to {high} of 100 intervals hold the mean of new "
        f"seeds (new splits and new training runs) and their animal pairs; there are {seeds} seeds here. {short}A test "
        f"of fewer than {FEWEST} pairs in all has no interval."
    )


def intervals(
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable], seed: int = 0
) -> Float64[np.ndarray, "2 v"]:
    """Percentile intervals of the means of v groups of records, each divided among k clusters.

    `seeds` has the seed of each cluster (an animal pair); `seed` is for the draws. All groups share the draws; a group
    ignores draws without any of its clusters. NaN for a group with fewer than `FEWEST` clusters, and for two seeds,
    because Student's interval would reach 13 standard errors to each side. With one seed the interval is for that seed.
    """
    means = resampled_means(sums, counts, seeds, seed)
    tail = (1 - CONFIDENCE) / 2
    quantile = np.nanquantile if np.isnan(means).any() else np.quantile  # the same, but takes many times as long
    return np.where(enough(counts, seeds), quantile(means, [tail, 1 - tail], axis=0), np.nan)


def enough(counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable]) -> Bool[np.ndarray, " v"]:
    """Whether each group gets an interval: it needs at least `FEWEST` clusters, and one seed or more than two."""
    owner = owners(seeds)
    of_seeds = np.stack([(counts[owner == number] > 0).any(0) for number in range(owner.max() + 1)]).sum(0)
    return ((counts > 0).sum(0) >= FEWEST) & (of_seeds != 2)


def owners(seeds: Sequence[Hashable]) -> Int64[np.ndarray, " k"]:
    """The index of each cluster's seed, from 0."""
    return np.unique([str(seed) for seed in seeds], return_inverse=True)[1].astype(np.int64)


def resampled_means(
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable], seed: int = 0
) -> Float64[np.ndarray, "r v"]:
    """The means of v groups in each of `RESAMPLES` draws, shared by all groups. For a number that depends on several
    groups use `resampled`, whose correction for few seeds is that number's own.

    NaN for a draw that has no record of a group.
    """
    owner = owners(seeds)
    return drawn_means(widened(sums, counts, owner), counts, owner, seed)


def resampled(
    function: Callable[[Float64[np.ndarray, "n v"]], Float64[np.ndarray, " n"]],
    sums: Float64[np.ndarray, "k v"],
    counts: Float64[np.ndarray, "k v"],
    seeds: Sequence[Hashable],
    seed: int = 0,
) -> Float64[np.ndarray, " r"]:
    """A statistic of the means of v groups in each of `RESAMPLES` draws. `function` maps n rows of v means to n values.

    The seeds of all groups move by one factor, found from the statistic's values by seed and cluster, to first order in
    the means (delta method). So the draws of a difference spread as those of differences by cluster do. Where the
    statistic doesn't change with the means, each group has its own factor, as in `resampled_means`.
    """
    owner = owners(seeds)
    whole, steps = sums.sum(0) / counts.sum(0), STEP * np.eye(sums.shape[1])
    slopes = (function(whole + steps) - function(whole - steps)) / (2 * STEP)
    weights = np.where(np.isfinite(slopes), slopes, 0.0)
    return function(drawn_means(widened(sums, counts, owner, weights), counts, owner, seed))


def drawn_means(
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], owner: Int64[np.ndarray, " k"], seed: int
) -> Float64[np.ndarray, "r v"]:
    """The means of v groups in each draw; NaN for a draw that has no record of a group."""
    drawn = draws_of(owner.tobytes(), seed)
    numbers = drawn @ counts
    return np.divide(drawn @ sums, numbers, out=np.full_like(numbers, np.nan), where=numbers > 0)


@lru_cache(maxsize=4)  # the tasks of a test have the same clusters
def draws_of(owner: bytes, seed: int) -> Float64[np.ndarray, "r k"]:
    """The cached result of `draws` for a seed, which must not be changed."""
    drawn = draws(np.frombuffer(owner, np.int64), np.random.default_rng(seed))
    drawn.flags.writeable = False
    return drawn


def draws(owner: Int64[np.ndarray, " k"], rng: np.random.Generator) -> Float64[np.ndarray, "r k"]:
    """Resample as many seeds as there are, and within each drawn seed as many clusters as it has; returns how often
    each cluster is drawn."""
    n = int(owner.max()) + 1
    chosen = rng.integers(n, size=(RESAMPLES, n))
    drawn = np.zeros((RESAMPLES, len(owner)))
    for one in range(n):
        some = np.flatnonzero(owner == one)
        for turn in range(n):
            rows = np.flatnonzero(chosen[:, turn] == one)
            drawn[np.ix_(rows, some)] += rng.multinomial(len(some), np.full(len(some), 1 / len(some)), len(rows))
    return drawn


def widened(
    sums: Float64[np.ndarray, "k v"],
    counts: Float64[np.ndarray, "k v"],
    owner: Int64[np.ndarray, " k"],
    weights: Float64[np.ndarray, " v"] | None = None,
) -> Float64[np.ndarray, "k v"]:
    """Move each seed's means away from the overall means, or towards them; returns the sums of all clusters.

    The `factor` is each group's own, or with `weights` that of the groups' weighted sum, unless all weights are 0.
    """
    member = (owner == np.arange(owner.max() + 1)[:, None]).astype(np.float64)
    numbers = member @ counts
    known, present = numbers > 0, counts > 0
    means = np.divide(member @ sums, numbers, out=np.zeros_like(numbers), where=known)
    whole = sums.sum(0) / np.maximum(counts.sum(0), 1)
    values, rest = means, (sums - counts * means[owner]) / np.where(known, numbers, 1.0)[owner]
    if weights is not None and (used := weights != 0).any():
        values, rest = (values @ weights)[:, None], (rest @ weights)[:, None]
        known, present = known[:, used].all(1, keepdims=True), present[:, used].any(1, keepdims=True)
    return sums + counts * ((factor(values, rest, known, present, member) - 1) * (means - whole))[owner]


def factor(
    values: Float64[np.ndarray, "s w"],
    rest: Float64[np.ndarray, "k w"],
    known: Bool[np.ndarray, "s w"],
    present: Bool[np.ndarray, "k w"],
    member: Float64[np.ndarray, "s k"],
) -> Float64[np.ndarray, " w"]:
    """Return the factor on seeds' distances from their mean that gives resampled means the variance of seeds beyond
    what their pairs explain, at Student's quantile.

    `values` are of seeds. `rest` is what each cluster adds to the error of its seed's value. `known` and `present` say
    which seeds and clusters have records.
    """
    from scipy.special import ndtri, stdtrit  # scipy.stats has the same under other names, and takes a second to load

    n = known.sum(0)
    centre = (values * known).sum(0) / np.maximum(n, 1)
    between = ((values - centre) ** 2 * known).sum(0) / np.maximum(n - 1, 1)
    explained = (pair_variance(rest, present, member) * known).sum(0) / np.maximum(n, 1)
    share = np.divide(np.maximum(between - explained, 0), between, out=np.zeros_like(between), where=between > 0)
    quantile = (1 + CONFIDENCE) / 2
    few = (stdtrit(np.maximum(n - 1, 1), quantile) / ndtri(quantile)) ** 2 * n / np.maximum(n - 1, 1)
    return np.sqrt(few * share)


def pair_variance(
    rest: Float64[np.ndarray, "k w"], present: Bool[np.ndarray, "k w"], member: Float64[np.ndarray, "s k"]
) -> Float64[np.ndarray, "s w"]:
    """Return the variance of each seed's value that its clusters explain (as of a ratio of sums); 0 for fewer than
    two."""
    size = member @ present.astype(np.float64)
    corrected = np.divide(size, size - 1, out=np.zeros_like(size), where=size > 1)
    return corrected * (member @ rest**2)
