"""How small a difference could a study have found? Studies are simulated with the spread that runs show.

The value of an animal pair in a seed is the true difference plus a normal deviation of its seed, one of its pair and
one of both. A difference is decided if the interval of `intervals` excludes 0 on its side.
"""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.studies.analysis.intervals import Names, Spread, has_interval, membership

POWER, STUDIES = 0.8, 2000
Values = Float64[np.ndarray, " k"]


class Deviations(NamedTuple):
    """Standard deviations of differences: of seeds, of animal pairs in all seeds, of a pair in one seed."""

    seed: float
    pair: float
    rest: float

    def draw(self, seeds: Names, pairs: Names, rng: np.random.Generator) -> Float64[np.ndarray, "k studies"]:
        """Draw the deviations of k clusters in `STUDIES` studies."""
        of_seed, of_pair = membership(seeds), membership(pairs)
        found = self.rest * rng.normal(size=(len(seeds), STUDIES))
        found += of_seed.T @ (self.seed * rng.normal(size=(len(of_seed), STUDIES)))
        return found + of_pair.T @ (self.pair * rng.normal(size=(len(of_pair), STUDIES)))


def deviations_of(values: Values, seeds: Names, pairs: Names) -> Deviations:
    """Estimate the deviations from the mean difference of each pair in each seed, by the method of moments. Without
    pairs that seeds share those of pairs can't be told from the rest, and count as that."""
    of_seed, of_pair = membership(seeds), membership(pairs)
    n, g, k = len(of_seed), len(of_pair), len(values)
    seed_means, pair_means = (each @ values / each.sum(1) for each in (of_seed, of_pair))
    shared = n > 1 and k - n - g + 1 > 0
    left = values - of_seed.T @ seed_means - (of_pair.T @ pair_means - values.mean() if shared else 0)
    rest = float((left**2).sum()) / max(k - n - (g - 1 if shared else 0), 1)
    pair = float(pair_means.var(ddof=1)) - rest * g / k if shared and g > 1 else 0.0
    seed = float(seed_means.var(ddof=1)) - rest * n / k if n > 1 else 0.0
    return Deviations(*(math.sqrt(max(variance, 0.0)) for variance in (seed, pair, rest)))


def smallest_decided(of: Deviations, counts: Values, seeds: Sequence[Hashable], pairs: Sequence[Hashable]) -> float:
    """Return the difference that 80 of 100 studies with these seeds, pairs and numbers of records decide; nan where
    such studies have no interval."""
    if not has_interval(counts[:, None], seeds, pairs).all():
        return math.nan
    weights = (counts / counts.sum())[:, None]
    drawn = of.draw(seeds, pairs, np.random.default_rng(0))
    errors = (weights * drawn).sum(0)
    its = Spread.of(weights * (drawn - errors), np.ones(drawn.shape, bool), seeds, pairs)
    half = its.student * np.sqrt(its.variance)
    return float(np.quantile([half - errors, half + errors], POWER))  # errors are as likely with the other sign


def planned_clusters(
    seeds: Sequence[Hashable], pairs: Sequence[Hashable], planned: int
) -> tuple[list[int], list[Hashable], list[Hashable]]:
    """Return the clusters of a study of as many seeds as are planned (0: as there are), whose animal pairs are those of
    the seeds that there are, in turn: their positions among these, and the seed and pair of each."""
    there, shared = list(dict.fromkeys(seeds)), len({*pairs}) < len(pairs)
    if planned in (0, len(there)):
        return list(range(len(seeds))), list(seeds), list(pairs)
    found = [
        (k, seed, pairs[k] if shared else (seed, pairs[k]))
        for seed in range(planned)
        for k, own in enumerate(seeds)
        if own == there[seed % len(there)]
    ]
    chosen, of_seed, of_pair = map(list, zip(*found, strict=True))
    return chosen, of_seed, of_pair
