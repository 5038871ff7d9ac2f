"""Differences between two sets of predictions on the same records, with bootstrap intervals."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from envs.errors import UserError

RESAMPLES = 2000
CONFIDENCE = 0.95

# Seed, subset, task, scene and caption of a record, and its point: 1 right, one half a tie.
Points = dict[tuple[int, str, str, str, str], float]


class Difference(NamedTuple):
    """Mean of the differences (second minus first), its interval, and how many records."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def read_points(cells: Iterable[tuple[int, Path]]) -> Points:
    """The points of all records of cells, given as their seed and folder."""
    points: Points = {}
    for seed, folder in cells:
        file = folder / "predictions.csv"
        try:
            with file.open(newline="") as lines:
                for row in csv.DictReader(lines):
                    true, false = float(row["score_caption"]), float(row["score_negative"])
                    key = (seed, row["subset"], row["task"], row["scene"], row["caption"])
                    points[key] = (true > false) + 0.5 * (true == false)
        except (OSError, KeyError, ValueError) as error:
            raise UserError(f"{file} can't be read ({error}); delete its folder and run the study again") from error
    return points


def difference(first: Points, second: Points, subset: str, task: str, seed: int = 0) -> Difference | None:
    """How much higher the second scores on the records that both have; None if there are none.

    Records are resampled together with both their points (paired bootstrap, percentile interval),
    for the seeds there are: it tells how sure the mean is for these runs, not for new seeds.
    """
    keys = sorted(key for key in first.keys() & second.keys() if key[1:3] == (subset, task))
    if not keys:
        return None
    deltas = np.array([second[key] - first[key] for key in keys])
    low, high = interval(deltas, seed)
    return Difference(float(deltas.mean()), low, high, len(deltas))


def interval(values: Float64[np.ndarray, " n"], seed: int) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean."""
    from scipy.stats import bootstrap

    if np.ptp(values) == 0:  # nothing to resample: scipy warns and gives NaN
        return float(values[0]), float(values[0])
    found = bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        batch=100,
        random_state=np.random.default_rng(seed),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
