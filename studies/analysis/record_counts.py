"""How many records, and how many animal pairs, the numbers of a table are of: one line for reports."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from menagerie.studies.analysis.paired_bootstrap import Points, read_points

Column = tuple[str, str]  # subset and task


class Count(NamedTuple):
    """Of one test in one run."""

    records: int
    pairs: int
    """Different animal pairs that these show."""


Counts = Mapping[Column, Count]


def counts_of(points: Points) -> dict[Column, Count]:
    """The records of one run by subset and task."""
    animals: dict[Column, list[str]] = {}
    for key, point in points.items():
        animals.setdefault(key[1:3], []).append(point.animals)
    return {column: Count(len(its), len(set(its))) for column, its in animals.items()}


@cache  # what is finished doesn't change, and reports are written anew after every run
def counts_in(folder: Path) -> dict[Column, Count]:
    """Those of a finished run's folder."""
    return counts_of(read_points([(0, folder)]))


def record_line(runs: Iterable[Counts], columns: Mapping[Column, str]) -> str:
    """ "seen pairs 16 (1), unseen pairs 64 to 96 (6)": records and animal pairs of one run, the least and the most of
    all runs, by what each column is called; empty where nothing is finished."""
    every = list(runs)
    found = {name: [run[column] for run in every if column in run] for column, name in columns.items()}
    return ", ".join(f"{name} {numbers_of(its)}" for name, its in found.items() if its)


def numbers_of(counts: Sequence[Count]) -> str:
    """ "64 to 96 (6)": records and animal pairs of one test."""
    records, pairs = (span(its) for its in zip(*counts, strict=True))
    return f"{records} ({pairs})"


def fewest_pairs(runs: Iterable[Counts], columns: Iterable[Column]) -> int:
    """The fewest animal pairs that one of some tests has in a run; 0 where nothing is finished."""
    wanted = set(columns)
    return min((count.pairs for run in runs for column, count in run.items() if column in wanted), default=0)


def span(numbers: Iterable[int]) -> str:
    """A number that all have, or the least and the most."""
    known = sorted(numbers)
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
