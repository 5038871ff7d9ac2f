"""How two groups of records differ that show other images, such as rendered and photographed ones: not paired."""

import math

import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.studies.analysis.two_levels import CONFIDENCE, FEWEST, enough, resampled_means
from menagerie.studies.frame.estimate import Estimate

NOTHING = Estimate(math.nan, math.nan, math.nan, 0, 0, 0, math.nan)
Matrix = Float64[np.ndarray, "k v"]


def compared(first: pd.DataFrame, second: pd.DataFrame) -> tuple[Estimate, Estimate, Estimate]:
    """The means of two groups, and the second minus the first: animal pairs are drawn for both together, as their
    records are of other images."""
    sums, numbers, seeds = tally(first, second)
    if not seeds:
        return NOTHING, NOTHING, NOTHING
    drawn, known, has = resampled_means(sums, numbers, seeds), enough(numbers, seeds), numbers > 0
    values = [float(a / b) if b else math.nan for a, b in zip(sums.sum(0), numbers.sum(0), strict=True)]
    n, of = len({*seeds}), numbers.sum(0).astype(int).tolist()
    levels = [with_interval(values[k], drawn[:, k], bool(known[k]), of[k], int(has[:, k].sum()), n) for k in (0, 1)]
    if not has.any(0).all():
        return *levels, NOTHING
    gaps = drawn[:, 1] - drawn[:, 0]
    gap = with_interval(values[1] - values[0], gaps, bool(known.all()), sum(of), int(has.all(1).sum()), n, signed=True)
    return *levels, gap


def with_interval(
    value: float, drawn: Float64[np.ndarray, " r"], known: bool, *numbers: int, signed: bool = False
) -> Estimate:
    """A value with the percentile interval of its draws, where there are enough animal pairs; `numbers` are those of
    records, pairs and seeds."""
    low = high = math.nan
    if known and numbers[1] >= FEWEST and not np.isnan(drawn).all():
        tail = (1 - CONFIDENCE) / 2
        low, high = np.nanquantile(drawn, [tail, 1 - tail]).clip(-1.0 if signed else 0.0, 1.0).tolist()
    return Estimate(value, low, high, *numbers, math.nan, signed)


def tally(*groups: pd.DataFrame) -> tuple[Matrix, Matrix, list[int]]:
    """Points and numbers of each animal pair of each seed in each group, and the pairs' seeds."""
    summed = [points.groupby(["seed", "animals"])["value"].agg(["sum", "count"]) for points in groups]
    both = pd.concat(summed, axis=1, keys=range(len(groups))).fillna(0.0).sort_index()
    sums, numbers = (both.xs(name, axis=1, level=1).to_numpy(float) for name in ("sum", "count"))
    return sums, numbers, [seed for seed, _ in both.index]
