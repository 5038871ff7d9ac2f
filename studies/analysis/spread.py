"""The variance of means over new seeds and new animal pairs, and Student's quantile for it.

Records of one animal pair are correlated, in all seeds that test it; so are all records of one seed, which decides
training and mostly the split. So the variance of a mean is that of seeds (S) plus that of pairs (P), minus that of the
pairs of single seeds (C), which both contain: the two-way clustered variance of Cameron, Gelbach and Miller (2011,
"Robust inference with multiway clustering"). If each seed has pairs of its own, P equals C, and S is left. Negative
values of S - C and P - C count as 0. Student's quantile has Satterthwaite's degrees of freedom with three changes,
found by simulation (docs/reports.md):
- They are at least `LEAST_FREEDOM`: with two, as three seeds have, an interval would be twice as wide as with the true
  variance.
- Few seeds may agree by chance, so S is increased by C times sqrt(2 / (seeds - 1)), its standard deviation if seeds
  don't differ.
- P - C has a third of the freedom of a normal variance, because near 100 % a few hard pairs decide it.

Few pairs that seeds share say too little of others. Then P - C is left out, and the interval is for these pairs
(`is_for_own_pairs`). Pairs that have an animal in common count as independent.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

CONFIDENCE = 0.95
# With fewer pairs that seeds share, an interval is for these pairs alone. In simulations at 98 % with very different
# pairs, intervals for new pairs cover the truth in 89 of 100 cases with 12 pairs, in 90 with 20.
MANY_SHARED = 20
LEAST_FREEDOM, PAIR_FREEDOM = 3.0, 1 / 3

Table = Float64[np.ndarray, "k v"]
"""Sums or numbers of the records of v groups in k clusters."""
Row = Float64[np.ndarray, " v"]
Names = Sequence[Hashable]
"""The seed, or the animal pair, of each cluster."""


def is_for_own_pairs(counts: Table, pairs: Names) -> Bool[np.ndarray, " v"]:
    """Whether a group's interval is for its own animal pairs alone: they are fewer than `MANY_SHARED`, and on average
    two seeds or more test each."""
    number = count_different(counts, pairs)
    return (number < MANY_SHARED) & ((counts > 0).sum(0) >= 2 * number)


def count_different(counts: Table, names: Names) -> Int64[np.ndarray, " v"]:
    """Count the different names of the clusters of each group."""
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
    """The weight of each of the `variance_components`."""

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
    """Return the covariances of estimates by seeds, by pairs, and by the pairs of single seeds, from the contributions
    of k clusters to their errors. `right` has a column for each of `left`, or one for all. For the third, contributions
    of several seeds to a pair are centred, so that the effect of the pair itself isn't in it."""
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
