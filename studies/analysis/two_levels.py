"""Intervals that cover new seeds and new animal pairs: a bootstrap of two levels, corrected for few seeds.

Records of one animal pair resemble each other, and so do all records of one seed, which decides split and training. So
seeds are drawn with replacement, and within each its animal pairs, whole. Drawn as they are, few seeds give intervals
that are wrong both ways: n seeds drawn anew spread less than n new ones (by (n - 1) / n, and by the difference of
Student's and the normal quantile), and where seeds don't differ, the pairs' share of their spread would count twice.
So the spread of seeds that pairs don't explain (an analysis of variance of two levels) is what is drawn, widened to
Student's quantile. `tests/studies/test_two_levels.py` simulates how often such intervals cover the truth, however much
seeds differ (`FEW_COVER`, `MANY_COVER`). Pairs that share an animal count as independent within a seed; the same
simulation measures what that neglects.
"""

import math
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int64

RESAMPLES = 2000
CONFIDENCE = 0.95
# Fewer clusters, drawn anew, say nothing of others: two that agree would look certain.
FEWEST = 5
# Pairs of a seed from which on intervals cover about as often as they say.
MANY_PAIRS = 12
# How many of 100 simulated intervals of 3 seeds or more hold the truth, the least and the most: of fewer pairs a seed
# than `MANY_PAIRS`, and of as many or more.
FEW_COVER, MANY_COVER = (87, 95), (91, 97)
METHOD = (
    "are by a bootstrap of two levels, which draws seeds and within them animal pairs, and widens the spread of few "
    "seeds to Student's quantile"
)


def without_interval(low: float, high: float, pairs: int) -> str:
    """The text that replaces an interval that would say nothing, with the reason; empty for other intervals.

    One without width is none: it would look like perfect certainty.
    """
    if pairs < FEWEST:
        return "one animal pair: no interval" if pairs == 1 else f"only {pairs} pairs: no interval"
    if math.isnan(low):
        return "only 2 seeds: no interval"
    return "no spread: no interval" if low == high else ""


def meaning(seeds: int, pairs: int) -> str:
    """What an interval of this module says, in sentences for reports: how it is made, and how often such ones hold the
    truth in simulations, with as many seeds and with `pairs`, the fewest animal pairs of a test in one seed (0 where
    that isn't known yet)."""
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
        else f"A test here has fewer than {MANY_PAIRS} pairs a seed: take its for too narrow. "
    )
    return (
        f"{intervals_of} {METHOD}. In simulations {low} to {high} of 100 of them hold the mean of new "
        f"seeds (new splits and new training runs) and their animal pairs; there are {seeds} seeds here. {short}Fewer "
        f"than {FEWEST} pairs in all have none."
    )


def intervals(
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable], seed: int = 0
) -> Float64[np.ndarray, "2 v"]:
    """Percentile intervals of the means of v groups of records, of which k clusters have parts.

    A cluster is an animal pair of one of `seeds`; `seed` is that of the draws. All groups have the same draws; one of
    whose clusters a draw has none is left out there. NaN for a group with fewer than `FEWEST` clusters, or with two
    seeds, of which Student's interval is 13 times their standard error. With one seed it is for that seed.
    """
    means = resampled_means(sums, counts, seeds, seed)
    tail = (1 - CONFIDENCE) / 2
    return np.where(enough(counts, seeds), np.nanquantile(means, [tail, 1 - tail], axis=0), np.nan)


def enough(counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable]) -> Bool[np.ndarray, " v"]:
    """Whether each group gets an interval: it needs `FEWEST` clusters or more, and not exactly two seeds."""
    owner = owners(seeds)
    of_seeds = np.stack([(counts[owner == number] > 0).any(0) for number in range(owner.max() + 1)]).sum(0)
    return ((counts > 0).sum(0) >= FEWEST) & (of_seeds != 2)


def owners(seeds: Sequence[Hashable]) -> Int64[np.ndarray, " k"]:
    """The seed of each cluster as a number from 0."""
    return np.unique([str(seed) for seed in seeds], return_inverse=True)[1].astype(np.int64)


def resampled_means(
    sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], seeds: Sequence[Hashable], seed: int = 0
) -> Float64[np.ndarray, "r v"]:
    """The means of v groups in each of `RESAMPLES` draws, the same for all groups: for what is computed of several
    means together. NaN where a draw has no record of a group."""
    owner = owners(seeds)
    drawn = draws(owner, np.random.default_rng(seed))
    numbers, points = drawn @ counts, drawn @ widened(sums, counts, owner)
    return np.divide(points, numbers, out=np.full_like(numbers, np.nan), where=numbers > 0)


def draws(owner: Int64[np.ndarray, " k"], rng: np.random.Generator) -> Float64[np.ndarray, "r k"]:
    """Resample seeds, and within each drawn seed its clusters, as often as there are; returns how often each cluster
    is drawn."""
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
    """The sums of all clusters with each seed's mean moved away from the mean of all, or towards it.

    By so much that a drawn mean has the variance of seeds beyond what their pairs explain, at Student's quantile.
    """
    from scipy.stats import norm, t

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
    few = (t.ppf(quantile, np.maximum(n - 1, 1)) / norm.ppf(quantile)) ** 2 * n / np.maximum(n - 1, 1)
    moved = (np.sqrt(few * share) - 1) * (means - whole)
    return sums + counts * moved[owner]


def pair_variance(
    sums: Float64[np.ndarray, "k v"],
    counts: Float64[np.ndarray, "k v"],
    means: Float64[np.ndarray, "s v"],
    member: Float64[np.ndarray, "s k"],
) -> Float64[np.ndarray, "s v"]:
    """Variance of each seed's mean that its clusters explain (of a ratio of sums); 0 where it has fewer than two."""
    number, size = member @ counts, member @ (counts > 0)
    owner = member.argmax(0)
    squares = member @ ((sums - counts * means[owner]) ** 2)
    corrected = np.divide(size, size - 1, out=np.zeros_like(number), where=size > 1)
    return np.divide(corrected * squares, number**2, out=np.zeros_like(number), where=number > 0)
