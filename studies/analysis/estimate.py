"""An estimate: a number with its interval, whatever its statistic, and the one way in which it is printed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from menagerie.studies.analysis.spread import CONFIDENCE
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.two_levels import MANY_PAIRS, without_interval


class Estimate(NamedTuple):
    """A number with its interval. Bounds are nan if there is no interval, and infinite where one is unbounded."""

    value: float
    low: float
    high: float
    n: int
    """Number of records; for a paired difference, of those whose animal pair both sides have; of a rank correlation,
    or a mean over seeds, of its values."""
    clusters: int | None
    """Number of different animal pairs; 0 if no records are kept, as for four-way items. Of a statistic of several
    groups, the number in the group that has the fewest. None for an interval to which pairs don't matter."""
    seeds: int
    """Number of seeds; of a rank correlation, of trainings."""
    deviation: float
    """Standard deviation of the seeds' own values; nan for one seed."""
    signed: bool = False
    """Whether the number is written with its sign, as a difference is."""
    times: int = 100
    """By what the number is multiplied when it is printed: 100 prints a share in percent."""
    digits: int = 1
    """How many decimals are printed."""
    p: float = math.nan
    """Two-sided p value of the hypothesis that the number is 0; nan if none is computed."""

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
        """Whether there is an interval that can decide on which side of a value the number lies. An interval of zero
        width can only with `MANY_PAIRS` animal pairs or more; fewer pairs may agree by chance."""
        return self.known or ((self.clusters or 0) >= MANY_PAIRS and not math.isnan(self.low))

    def written(self, number: float) -> str:
        """Write a number in the estimate's unit."""
        return f"{self.times * number:{'+' if self.signed else ''}.{self.digits}f}"

    def __str__(self) -> str:
        if math.isnan(self.value):
            return DASH
        alone = self.clusters is None and self.seeds < 2  # the mean of a single number
        return self.written(self.value) + ("" if alone else f" [{self.bounds}]")


NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0, math.nan)


def mean_over_seeds(values: Sequence[float], least: float = 0.0, most: float = 1.0) -> Estimate:
    """Return the mean of a number of each seed, with Student's interval cut at `least` and `most`."""
    from scipy.special import stdtrit

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Estimate(mean, math.nan, math.nan, n, None, n, math.nan)
    deviation = float(np.std(values, ddof=1))
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(n)
    return Estimate(mean, max(least, mean - half), min(most, mean + half), n, None, n, deviation)
