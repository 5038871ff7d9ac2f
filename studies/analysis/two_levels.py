"""Intervals for new seeds and new animal pairs, whether seeds have test pairs of their own or in common.

An accuracy has Jeffreys' interval for the effective number of independent records, which have the same variance
(`spread`; Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of positive
counts"), so that an accuracy of 100 % has a lower bound too. Any other statistic is evaluated at the two ends of the
line through the means that has its whole variance; for a weighted sum these are its value ± t standard errors.

docs/reports.md has the coverage of these intervals and what else was tried; `tests/studies/coverage.py` simulates it.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64

from menagerie.studies.analysis.spread import (
    CONFIDENCE,
    MANY_SHARED,
    Names,
    Spread,
    Table,
    count_different,
    membership,
    variance_components,
)

COVER = 90  # percent of intervals that cover the truth in simulations; slightly fewer in the worst case
STEP = 1e-3  # of each group's mean, for numerical derivatives of a statistic
RESAMPLES = 2000
# With fewer animal pairs there is no interval, because two that agree would look certain.
FEWEST = 5
# With so many pairs, even records that are all equal are conclusive.
MANY_PAIRS = 12
EQUAL = 1e-16  # a smaller variance is due to rounding

Means = Float64[np.ndarray, "rows groups"]
Statistic = Callable[[Means], Float64[np.ndarray, " rows"]]
"""Maps rows of the means of groups to a value each."""


def without_interval(low: float, high: float, pairs: int, seeds: int = 2) -> str:
    """Return the text that replaces an uninformative interval, with the reason; empty for other intervals.

    An interval of zero width is uninformative, because it would look like perfect certainty. `pairs` and `seeds` are
    those of the group that has the fewest; without `seeds`, a missing interval is due to two seeds.
    """
    if pairs < FEWEST:
        return "one animal pair: no interval" if pairs == 1 else f"only {pairs} pairs: no interval"
    if math.isnan(low):
        return "only 2 seeds: no interval" if seeds == 2 else "no interval"
    return "no spread: no interval" if low == high else ""


def explain_intervals(seeds: int, shared: bool = False, few: bool = False) -> str:
    """Write sentences for reports on what intervals of so many seeds are for, and on their coverage in simulations.
    `shared`: all seeds are trained and tested on one split. `few`: a test's intervals are for its own pairs
    (`fixed`)."""
    intervals_of = f"Intervals (nominally {100 * CONFIDENCE:.0f} %)"
    none = f"A test of fewer than {FEWEST} animal pairs has none."
    if seeds == 2:
        return "Two seeds are too few for an interval; with three there is one."
    if seeds < 2:
        return f"{intervals_of} are for new animal pairs with this seed, not for new seeds. {none}"
    new = "new training runs on this split" if shared else "new splits and new training runs"
    own = (
        f"A test here has fewer than {MANY_SHARED} pairs, which seeds share: its intervals are for new seeds and for "
        "these pairs, not for new ones. "
    )
    return (
        f"{intervals_of} are for the mean of new seeds ({new}) and new animal pairs; there are {seeds} seeds here. In "
        f"simulations about {COVER} of 100 or more cover it. {own * few}{none}"
    )


def accuracy_intervals(sums: Table, counts: Table, seeds: Names, pairs: Names) -> Float64[np.ndarray, "2 v"]:
    """Intervals of v accuracies, shares from 0 to 1. NaN where `has_interval` is False. With one seed they are for that
    seed.

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
    """Return the interval of a statistic of the means of v groups; its variance is by the delta method. NaN if a group
    has no interval (`has_interval`); of zero width if the statistic doesn't change with the means."""
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
