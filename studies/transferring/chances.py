"""What guessing gives on a benchmark: its own rules, ties broken at random, for scores that are all equal."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from menagerie.generators.benchmarks.benchmark import summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographSet, by_group
from menagerie.studies.transferring.pieces import Piece

Chances = dict[tuple[str, str], float]


def chances_of(pieces: Sequence[Piece]) -> dict[tuple[str, str, str], float]:
    """By benchmark, "group" or "headline", and its name, as fractions; no entry where all images meet all texts."""
    benches = {piece.subject.label: piece.subject.bench for piece in pieces}
    return {(label, *name): value for label, bench in benches.items() for name, value in chances_in(bench).items()}


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(bench: PhotographSet) -> Chances:
    """Those of one benchmark."""
    if isinstance(bench, MatrixBenchmark):
        return {}
    items = list(bench.items)
    outcomes = [bench.outcome(item, np.zeros((len(item.images), len(item.texts)))) for item in items]
    groups = {("group", name): summarise(its) for name, its in by_group(items, outcomes).items()}
    headlines = {("headline", name): its for name, its in bench.headlines(items, outcomes).items()}
    return {name: its.neutral for name, its in (groups | headlines).items() if its.neutral is not None}
