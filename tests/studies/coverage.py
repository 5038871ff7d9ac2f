"""Simulates how often intervals hold the truth, and how wide they are beside intervals made with the true spread.

    python -m tests.studies.coverage > coverage.csv
    python -m tests.studies.coverage 0.6 1 1.4        # other deviations of pairs

A study has some seeds and pairs of animals, and `RECORDS` records of each pair of a seed, right with a chance whose
log-odds are the sum of normal effects of the seed, the pair, and the pair in this seed. Either each seed has pairs of
its own, or all have the same. The truth is the mean over all possible seeds and pairs, or over all seeds for a study's
own pairs where the interval is for these.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import expit

from menagerie.studies.analysis.intervals import MANY_SHARED, accuracy_intervals

RECORDS, STUDIES = 16, 2000
SEED_SD, BOTH_SD = 0.3, 0.3  # in log-odds: of seeds 7 points at 50 %, 3 at 90 %; of a pair in one seed as much
Z, NORMAL = 1.959964, hermegauss(60)
X, W = NORMAL[0], NORMAL[1] / NORMAL[1].sum()
Values = Float64[np.ndarray, "..."]


class Cell(NamedTuple):
    """Settings of simulated studies."""

    shared: bool
    seeds: int
    pairs: int
    accuracy: float
    pair_sd: float
    seed_sd: float = SEED_SD

    @property
    def of_these(self) -> bool:
        """Whether the interval is for a study's own pairs."""
        return self.shared and self.pairs < MANY_SHARED

    @property
    def names(self) -> tuple[list[int], list[int]]:
        """The seed and the pair of each cluster."""
        each = np.tile(np.arange(self.pairs), self.seeds)
        number = np.repeat(np.arange(self.seeds), self.pairs)
        return number.tolist(), (each if self.shared else each + number * self.pairs).tolist()

    @property
    def centre(self) -> float:
        """The log-odds that give the accuracy on average."""
        spread = float(np.sqrt(self.seed_sd**2 + self.pair_sd**2 + BOTH_SD**2))
        return brentq(lambda at: float(mean(at, spread)) - self.accuracy, -15, 15)


DEVIATIONS = (0.4, 0.8, 1.2)


def mean(at: Values | float, spread: float) -> Values:
    """The mean accuracy over normal effects around log-odds."""
    return (expit(np.asarray(at)[..., None] + spread * X) * W).sum(-1)


def simulated(cell: Cell, studies: int = STUDIES, draw: int = 0) -> tuple[Values, Values, Values]:
    """Right records by cluster and study, and for each study the truth and the standard error of its mean."""
    rng, (n, m) = np.random.default_rng(draw), (cell.seeds, cell.pairs)
    pairs = cell.pair_sd * rng.normal(size=(1 if cell.shared else n, m, studies))
    odds = (
        cell.centre
        + pairs
        + cell.seed_sd * rng.normal(size=(n, 1, studies))
        + BOTH_SD * rng.normal(size=(n, m, studies))
    )
    right = rng.binomial(RECORDS, expit(odds)).reshape(n * m, studies).astype(float)
    if cell.of_these:
        return right, *of_pairs(cell, cell.centre + pairs[0])
    whole = np.sqrt(cell.seed_sd**2 + cell.pair_sd**2 + BOTH_SD**2)
    squares = [
        (W * mean(cell.centre + one * X, float(np.sqrt(whole**2 - one**2))) ** 2).sum() - cell.accuracy**2
        for one in (cell.seed_sd, cell.pair_sd, whole)
    ]
    noise = (cell.accuracy * (1 - cell.accuracy) - squares[2]) / RECORDS
    variance = squares[2] + noise + (m - 1) * squares[0] + (n - 1) * squares[1] * cell.shared
    return right, np.full(studies, cell.accuracy), np.full(studies, np.sqrt(variance / (n * m)))


def of_pairs(cell: Cell, odds: Float64[np.ndarray, "m studies"]) -> tuple[Values, Values]:
    """The mean over new seeds for the pairs of each study, and the standard error of such a mean of its seeds."""
    own = mean(odds, float(np.hypot(cell.seed_sd, BOTH_SD)))
    by_seed = np.stack([mean(odds + cell.seed_sd * x, BOTH_SD) for x in X])
    of_seeds = (W[:, None] * by_seed.mean(1) ** 2).sum(0) - own.mean(0) ** 2
    squared = (expit(odds[..., None] + float(np.hypot(cell.seed_sd, BOTH_SD)) * X) ** 2 * W).sum(-1)
    rest = squared - (W[:, None, None] * by_seed**2).sum(0) + (own - squared) / RECORDS
    return own.mean(0), np.sqrt((of_seeds + rest.mean(0) / cell.pairs) / cell.seeds)


Interval = Callable[..., Float64[np.ndarray, "2 v"]]


def covered(
    cell: Cell, interval: Interval = accuracy_intervals, studies: int = STUDIES, draw: int = 0
) -> tuple[float, float]:
    """The share of studies whose interval holds the truth, and the mean width of intervals as a multiple of those of ±
    1.96 true standard errors, cut at 0 and 1."""
    right, truth, error = simulated(cell, studies, draw)
    low, high = interval(right, np.full_like(right, RECORDS), *cell.names)
    ends = np.clip(right.mean(0) / RECORDS + Z * error * [[-1], [1]], 0, 1)
    held = (low <= truth + 1e-12) & (high >= truth - 1e-12)
    return float(held.mean()), float((high - low).mean() / (ends[1] - ends[0]).mean())


def rows(deviations: Sequence[float]) -> Iterator[str]:
    yield "pairs_are,seeds,pairs,accuracy,pair_sd,interval_for,holds,width"
    for its in product((False, True), (3, 5), (6, 12, 60), (0.5, 0.9, 0.98), deviations):
        cell = Cell(*its)
        held, width = covered(cell)
        own, whose = ("the same" if cell.shared else "own"), ("these pairs" if cell.of_these else "new pairs")
        yield f"{own},{cell.seeds},{cell.pairs},{cell.accuracy},{cell.pair_sd},{whose},{held:.4f},{width:.3f}"


if __name__ == "__main__":
    for row in rows([*map(float, sys.argv[1:])] or DEVIATIONS):
        print(row, flush=True)
