"""Intervals that cover new seeds and new animal pairs: a bootstrap of two levels, corrected for few seeds.

Records of one animal pair resemble each other, and so do all records of one seed, which decides split and training. So
seeds are drawn with replacement, and within each its animal pairs, whole. Without a correction, few seeds give wrong
intervals, too narrow or too wide: n resampled seeds spread less than n new ones (by (n - 1) / n, and by the difference
of Student's and the normal quantile), and if seeds don't differ, the pairs' contribution to the spread would count
twice. So the variance of seeds beyond what their pairs explain (an analysis of variance of two levels) is resampled,
widened to Student's quantile. `tests/studies/test_two_levels.py` simulates how often such intervals cover the truth,
for any difference between seeds (`FEW_COVER`, `MANY_COVER`). Pairs that share an animal count as independent within a
seed; the simulation also measures the effect of that.
"""

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float64, Int64

RESAMPLES = 2000
CONFIDENCE = 0.95
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


def without_interval(low: float, high: float, pairs: int) -> str:
    """The text that replaces an uninformative interval, with the reason; empty for other intervals.

    An interval without width is uninformative: it would look like perfect certainty.
    """
    if pairs < FEWEST:
        return "one animal pair: no interval" if pairs == 1 else f"only {pairs} pairs: no interval"
    if math.isnan(low):
        return "only 2 seeds: no interval"
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
    """The means of v groups in each of `RESAMPLES` draws, shared by all groups, for statistics of several means.

    NaN for a draw that has no record of a group.
    """
    owner = owners(seeds)
    drawn = draws_of(owner.tobytes(), seed)
    numbers, points = drawn @ counts, drawn @ widened(sums, counts, owner)
    return np.divide(points, numbers, out=np.full_like(numbers, np.nan), where=numbers > 0)


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
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], owner: Int64[np.ndarray, " k"]
) -> Float64[np.ndarray, "k v"]:
    """Move each seed's mean away from the overall mean, or towards it; returns the sums of all clusters.

    The factor gives resampled means the variance of seeds beyond what their pairs explain, at Student's quantile.
    """
    from scipy.special import ndtri, stdtrit  # scipy.stats has the same under other names, and takes a second to load

    member = (owner == np.arange(owner.max() + 1)[:, None]).astype(np.float64)
    numbers, known = member @ counts, member @ counts > 0
    means = np.divide(member @ sums, numbers, out=np.zeros_like(numbers), where=known)
    n = known.sum(0)
    whole = sums.sum(0) / np.maximum(counts.sum(0), 1)
    centre = means.sum(0) / np.maximum(n, 1)
    between = ((means - centre) ** 2 * known).sum(0) / np.maximum(n - 1, 1)
    pairs = pair_variance(sums, counts, means, member)
    explained = np.divide(pairs.sum(0), n, out=np.zeros_like(whole), where=n > 0)
    share = np.divide(np.maximum(between - explained, 0), between, out=np.zeros_like(whole), where=between > 0)
    quantile = (1 + CONFIDENCE) / 2
    few = (stdtrit(np.maximum(n - 1, 1), quantile) / ndtri(quantile)) ** 2 * n / np.maximum(n - 1, 1)
    moved = (np.sqrt(few * share) - 1) * (means - whole)
    return sums + counts * moved[owner]


def pair_variance(
    sums: Float64[np.ndarray, "k v"],
    counts: Float64[np.ndarray, "k v"],
    means: Float64[np.ndarray, "s v"],
    member: Float64[np.ndarray, "s k"],
) -> Float64[np.ndarray, "s v"]:
    """Return the variance of each seed's mean that its clusters explain (as of a ratio of sums); 0 for fewer than
    two."""
    number, size = member @ counts, member @ (counts > 0)
    owner = member.argmax(0)
    squares = member @ ((sums - counts * means[owner]) ** 2)
    corrected = np.divide(size, size - 1, out=np.zeros_like(number), where=size > 1)
    return np.divide(corrected * squares, number**2, out=np.zeros_like(number), where=number > 0)
