"""How many records and animal pairs tests have, in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Column = tuple[str, ...]  # subset and task, or one of them


class Count(NamedTuple):
    """Numbers of records and animal pairs of one test in one run."""

    records: int
    pairs: int
    """Number of different animal pairs in these records."""


Counts = Mapping[Column, Count]


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


def span(numbers: Iterable[int]) -> str:
    """The number, if all are equal, else the smallest and the largest: "64 to 96"."""
    known = sorted(numbers)
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
