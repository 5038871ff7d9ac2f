"""Rank correlations with intervals, over all cells of a study and within groups of them; p values for several tests."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, permutations, product
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Num

from menagerie.studies.analysis.intervals import CONFIDENCE, FEWEST, RESAMPLES, Estimate

MOST = 0.9999  # Fisher's transform of a perfect correlation is infinite
ONE_DEVIATION = (0.1587, 0.8413)  # the quantiles of a normal distribution one deviation from its mean
ARRANGEMENTS = 5040  # up to so many permutations, those of seven clusters, are all evaluated
Columns = Float64[np.ndarray, "draws n"]


def correlation(
    x: Num[np.ndarray, " n"],
    y: Num[np.ndarray, " n"],
    clusters: Sequence[Any],
    groups: Sequence[Any] = (),
    seed: int = 0,
) -> Estimate:
    """Return Spearman's rank correlation of x and y, with a bootstrap that draws whole clusters. Without a spread, as a
    perfect one, it has p but no interval; with too few clusters, or if it is undefined, it has neither.

    With groups, ranks are taken within each group, centred there and pooled, so that differences between groups don't
    count.
    """
    own = as_indices(groups) if len(groups) else np.zeros(len(x), int)
    number = as_indices(clusters)
    kinds = int(number.max()) + 1 if len(x) else 0
    value = float(spearman(x, y, np.ones((1, len(x))), own)[0]) if len(x) else np.nan
    low = high = p = np.nan
    if kinds >= FEWEST and np.isfinite(value):
        drawn = np.random.default_rng(seed).multinomial(kinds, [1 / kinds] * kinds, RESAMPLES)
        low, high, p = student_interval(value, spearman(x, y, drawn[:, number].astype(float), own), kinds)
        if np.isnan(p):
            low, high, p = value, value, permutation_p(x, y, number, own, seed)
    return Estimate(value, low, high, len(x), None, kinds, np.nan, signed=True, times=1, digits=2, p=p)


def student_interval(value: float, drawn: Float64[np.ndarray, " draws"], clusters: int) -> tuple[float, float, float]:
    """Return interval and p by Student's t on Fisher's scale, because quantiles of few clusters' draws would be too
    narrow; NaN if draws have no spread."""
    from scipy.stats import t

    centre, others = fisher(np.array([value])), fisher(drawn[np.isfinite(drawn)])
    # From quantiles, because draws of two or three different clusters may be perfectly correlated.
    spread = float(np.diff(np.quantile(others, ONE_DEVIATION))[0]) / 2 * np.sqrt(clusters / (clusters - 1))
    if not spread:
        return np.nan, np.nan, np.nan
    half = float(t.ppf((1 + CONFIDENCE) / 2, clusters - 1)) * spread
    low, high = (float(np.tanh(centre[0] + sign * half)) for sign in (-1, 1))
    return low, high, float(2 * t.sf(abs(centre[0]) / spread, clusters - 1))


def permutation_p(
    x: Num[np.ndarray, " n"],
    y: Num[np.ndarray, " n"],
    clusters: Int[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"],
    seed: int,
) -> float:
    """Return the two-sided p of a permutation test, in which whole clusters exchange their y with others that have as
    many rows in the same groups: over all permutations if they are few, else over `RESAMPLES` random ones."""
    alike = defaultdict(list)
    for cluster in range(clusters.max() + 1):
        rows = np.flatnonzero(clusters == cluster)
        alike[tuple(groups[rows])].append(rows)
    if math.prod(math.factorial(len(its)) for its in alike.values()) <= ARRANGEMENTS:
        arranged = product(*map(permutations, alike.values()))
    else:
        rng = np.random.default_rng(seed)
        drawn = ([rng.permutation(its) for its in alike.values()] for _ in range(RESAMPLES))
        arranged = chain([alike.values()], drawn)
    orders = np.array([np.concatenate([rows for its in each for rows in its]) for each in arranged])
    same, once = (groups[:, None] == groups).astype(float), np.ones((1, len(y)))
    one, other = (centred_ranks(values, once, same, once @ same)[0] for values in (x, y))
    products = np.abs(other[orders] @ one[orders[0]])  # the first one is the measured one
    return float(np.mean(products >= products[0] - 1e-9))


def fisher(rho: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    return np.arctanh(np.clip(rho, -MOST, MOST))


def as_indices(names: Sequence[Any]) -> Int[np.ndarray, " n"]:
    known = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], int)


def spearman(
    x: Num[np.ndarray, " n"], y: Num[np.ndarray, " n"], weights: Columns, groups: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, " draws"]:
    """Return the rank correlation of each draw, in which row i occurs weights[:, i] times."""
    same = (groups[:, None] == groups).astype(float)
    size = weights @ same
    one, other = (centred_ranks(values, weights, same, size) for values in (x, y))
    products = [(weights * a * b).sum(1) for a, b in ((one, other), (one, one), (other, other))]
    norm = np.sqrt(np.maximum(products[1] * products[2], 0))
    scale = np.maximum(weights.sum(1), 1)
    return np.divide(products[0], norm, out=np.full(len(norm), np.nan), where=norm > 1e-9 * scale)


def centred_ranks(
    values: Num[np.ndarray, " n"], weights: Columns, same: Float64[np.ndarray, "n n"], size: Columns
) -> Columns:
    """Return ranks within groups, minus the mean of their group; tied values get their mean rank."""
    below = ((values[:, None] < values) + 0.5 * (values[:, None] == values)) * same
    ranks = weights @ below
    return ranks - ((weights * ranks) @ same) / np.maximum(size, 1)


def holm(p: Sequence[float]) -> list[float]:
    """Return p values corrected for their number m (Holm 1979). In rising order they are multiplied by m, m - 1, ...;
    none falls below the one before it or exceeds 1. NaN stays NaN and isn't counted."""
    known = sorted((value, k) for k, value in enumerate(p) if not np.isnan(value))
    found, highest = [float("nan")] * len(p), 0.0
    for done, (value, k) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - done) * value))
        found[k] = highest
    return found


def correlation_outcome(its: Estimate, sign: int, p: float, level: float = 0.05) -> str:
    """Return the verdict: "confirmed" or "contradicted" if p is below the level, else "undecided"."""
    if np.isnan(p) or p >= level:
        return "undecided"
    return "confirmed" if its.value * sign > 0 else "contradicted"
