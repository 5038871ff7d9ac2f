"""Differences between two sets of predictions on the same records, with bootstrap intervals."""

import csv
import io
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.studies.analysis.two_levels import FEWEST, MANY_PAIRS, intervals, without_interval
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.result_file import checked_file

# Seed, subset, task, scene and caption of a record.
Key = tuple[int, str, str, str, str]


class RecordScore(NamedTuple):
    """How a record was scored: 1 right, one half a tie; and which animals it shows."""

    value: float
    animals: str


Points = dict[Key, RecordScore]


class Difference(NamedTuple):
    """Mean of the differences (second minus first), its interval, and how many records."""

    mean: float
    low: float
    high: float
    n: int
    clusters: int = FEWEST
    """Animal pairs, of each seed, that were drawn."""
    seeds: int = 1

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{self.bounds}]"

    @property
    def bounds(self) -> str:
        """The interval as text, or why there is none."""
        none = without_interval(self.low, self.high, self.clusters)
        return none or f"{100 * self.low:+.1f}, {100 * self.high:+.1f}"

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not without_interval(self.low, self.high, self.clusters)

    @property
    def conclusive(self) -> bool:
        """Whether its bounds say on which side of a value it is: few pairs that are all alike may be so by chance."""
        return self.known or self.clusters >= MANY_PAIRS


def read_points(cells: Iterable[tuple[int, Path]]) -> Points:
    """The points of all records of cells, given as their seed and folder."""
    points: Points = {}
    for seed, folder in cells:
        try:
            for row in csv.DictReader(io.StringIO(read_text(checked_file(folder, FILE)), newline="")):
                true, false = float(row["score_caption"]), float(row["score_negative"])
                key = (seed, row["subset"], row["task"], row["scene"], row["caption"])
                points[key] = RecordScore((true > false) + 0.5 * (true == false), row["animals"])
        except (KeyError, ValueError, TypeError, csv.Error) as error:
            file = folder / FILE
            raise UserError(f"{file} can't be read ({error}); delete its folder and run the study again") from error
    return points


def difference(first: Points, second: Points, subset: str, task: str, seed: int = 0) -> Difference | None:
    """How much higher the second scores on the records that both have; None if there are none.

    Paired: both models' points of an animal pair are drawn together. The interval is that of `two_levels.intervals`:
    it covers new seeds where there are several.
    """
    keys = sorted(key for key in first.keys() & second.keys() if key[1:3] == (subset, task))
    if not keys:
        return None
    clusters: dict[tuple[int, str], list[float]] = {}
    for key in keys:
        delta = second[key].value - first[key].value
        clusters.setdefault((key[0], first[key].animals), []).append(delta)
    sums, counts = (np.array([[f(deltas)] for deltas in clusters.values()], np.float64) for f in (sum, len))
    low, high = intervals(sums, counts, [own for own, _ in clusters], seed)[:, 0].clip(-1, 1)
    return Difference(
        float(sums.sum() / counts.sum()),
        float(low),
        float(high),
        len(keys),
        len(clusters),
        len({own for own, _ in clusters}),
    )


def pooled(points: Points, columns: Collection[tuple[str, str]]) -> Points:
    """The points of several subsets and tasks as those of one, both called ""."""
    return {(key[0], "", "", "/".join(key[1:4]), key[4]): point for key, point in points.items() if key[1:3] in columns}
