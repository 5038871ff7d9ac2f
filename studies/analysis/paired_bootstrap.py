"""Compares records of finished runs: differences with bootstrap intervals, numbers of records, and `--compare`."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.studies.analysis.pareto import Tally
from menagerie.studies.analysis.two_levels import FEWEST, MANY_PAIRS, intervals, without_interval
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.results import checked_file

# Seed, subset, task, scene and caption of a record.
Key = tuple[int, str, str, str, str]


class RecordScore(NamedTuple):
    """The score of a record, 1 if right and 0.5 for a tie, and the animals in its scene."""

    value: float
    animals: str


Points = dict[Key, RecordScore]


class Difference(NamedTuple):
    """The mean difference (second minus first), its interval, and the number of records."""

    mean: float
    low: float
    high: float
    n: int
    clusters: int = FEWEST
    """Number of clusters that were resampled: animal pairs of each seed."""
    seeds: int = 1

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{self.bounds}]"

    @property
    def bounds(self) -> str:
        """The interval as text, or the reason why there is none."""
        none = without_interval(self.low, self.high, self.clusters)
        return none or f"{100 * self.low:+.1f}, {100 * self.high:+.1f}"

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not without_interval(self.low, self.high, self.clusters)

    @property
    def conclusive(self) -> bool:
        """Whether the bounds can be compared with a value: they form an interval, or are equal for so many animal pairs
        that this isn't chance."""
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


def merged(parts: Iterable[Points]) -> Points:
    """Merge the records of several runs into one mapping."""
    return {key: point for part in parts for key, point in part.items()}


def tally(points: Points) -> Tally:
    """Sum points and numbers of records by animal pair, the unit that a bootstrap draws."""
    found: Tally = {}
    for _, point in sorted(points.items()):
        entry = found.setdefault(point.animals, [0.0, 0])
        entry[0] += point.value
        entry[1] += 1
    return found


def difference(first: Points, second: Points, subset: str, task: str, seed: int = 0) -> Difference | None:
    """The difference in accuracy, second minus first, on the records that both have; None if there are none.

    Paired: both models' points of an animal pair are drawn together. The interval is that of `two_levels.intervals`;
    with several seeds it covers new seeds.
    """
    keys = sorted(key for key in first.keys() & second.keys() if key[1:3] == (subset, task))
    if not keys:
        return None
    clusters: dict[tuple[int, str], list[float]] = {}
    for key in keys:
        delta = second[key].value - first[key].value
        clusters.setdefault((key[0], first[key].animals), []).append(delta)
    sums, counts = (np.array([[f(deltas)] for deltas in clusters.values()], np.float64) for f in (sum, len))
    low, high = intervals(sums, counts, [cluster_seed for cluster_seed, _ in clusters], seed)[:, 0].clip(-1, 1)
    return Difference(
        float(sums.sum() / counts.sum()),
        float(low),
        float(high),
        len(keys),
        len(clusters),
        len({cluster_seed for cluster_seed, _ in clusters}),
    )


def pooled(points: Points, columns: Collection[tuple[str, str]]) -> Points:
    """Merge several subsets and tasks into one, whose subset and task are ""."""
    return {(key[0], "", "", "/".join(key[1:4]), key[4]): point for key, point in points.items() if key[1:3] in columns}


Column = tuple[str, ...]  # subset and task, or one of them


class Count(NamedTuple):
    """Numbers of records and animal pairs of one test in one run."""

    records: int
    pairs: int
    """Number of different animal pairs in these records."""


Counts = Mapping[Column, Count]


def counts_of(points: Points) -> dict[Column, Count]:
    """The counts of one run by subset and task."""
    animals: dict[Column, list[str]] = {}
    for key, point in points.items():
        animals.setdefault(key[1:3], []).append(point.animals)
    return {column: Count(len(pairs), len(set(pairs))) for column, pairs in animals.items()}


@cache  # what is finished doesn't change, and reports are written anew after every run
def counts_in(folder: Path) -> dict[Column, Count]:
    """The counts of a finished run by subset and task."""
    return counts_of(read_points([(0, folder)]))


def record_line(runs: Iterable[Counts], columns: Mapping[Column, str]) -> str:
    """Describe the tests' sizes: "seen pairs 16 (1), unseen pairs 64 to 96 (6)", records and animal pairs of one run.

    Ranges go over all runs; `columns` gives each test's name. Empty if no run is finished.
    """
    every = list(runs)
    found = {name: [run[column] for run in every if column in run] for column, name in columns.items()}
    return ", ".join(f"{name} {numbers_of(counts)}" for name, counts in found.items() if counts)


def numbers_of(counts: Sequence[Count]) -> str:
    """Describe one test's size over all runs: "64 to 96 (6)", records and animal pairs."""
    records, pairs = (span(numbers) for numbers in zip(*counts, strict=True))
    return f"{records} ({pairs})"


def fewest_pairs(runs: Iterable[Counts], columns: Iterable[Column]) -> int:
    """The smallest number of animal pairs in any of these tests of any run; 0 if no run is finished."""
    wanted = set(columns)
    return min((count.pairs for run in runs for column, count in run.items() if column in wanted), default=0)


def span(numbers: Iterable[int]) -> str:
    """The number, if all are equal, else the smallest and the largest: "64 to 96"."""
    known = sorted(numbers)
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
