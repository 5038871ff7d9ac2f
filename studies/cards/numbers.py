"""The numbers of a card: accuracy of each task of each test, and means of several, with intervals over animal pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from jaxtyping import Float64

from menagerie.studies.analysis.two_levels import interval_of, intervals
from menagerie.studies.cards.scores import Point

DIGITS = 5
MEANS: Mapping[str, Callable[[str], bool]] = {
    "swaps of all tests": lambda task: task == "swap",
    "all tasks but four-way, of all tests": lambda task: not task.endswith(" score"),
}
"""The means of a card, and the tasks that each is over. Four-way items aren't among them, because they ask about the
captions of swaps again."""


class Number(msgspec.Struct, forbid_unknown_fields=True):
    """An accuracy from 0 to 1. It has no interval (None) if one of its tests has fewer than five animal pairs, or if
    both bounds are equal."""

    test: str
    task: str
    accuracy: float
    low: float | None
    high: float | None
    chance: float
    records: int
    pairs: int


def numbers_of(points: Iterable[Point]) -> tuple[list[Number], list[Number]]:
    """Return the number of each task of each test, and the means of `MEANS`, in which all tasks have equal weight."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.subset, point.task), []).append(point)
    pairs = sorted({point.animals for part in groups.values() for point in part})
    sums, counts = tally(list(groups.values()), pairs)
    seeds = [0] * len(pairs)
    ends = intervals(sums, counts, seeds, pairs).T.tolist()
    single = [number(key, [part], ends[k]) for k, (key, part) in enumerate(groups.items())]
    chosen = {name: [k for k, (_, task) in enumerate(groups) if takes(task)] for name, takes in MEANS.items()}
    parts = list(groups.values())
    return single, [
        number(("", name), [parts[k] for k in of], interval_of(mean, sums[:, of], counts[:, of], seeds, pairs))
        for name, of in chosen.items()
    ]


def mean(means: Float64[np.ndarray, "rows groups"]) -> Float64[np.ndarray, " rows"]:
    return means.mean(1).clip(0, 1)


def tally(
    groups: Sequence[Sequence[Point]], pairs: Sequence[str]
) -> tuple[Float64[np.ndarray, "pairs groups"], Float64[np.ndarray, "pairs groups"]]:
    """Sum up the points and the number of records of each animal pair in each group."""
    place = {pair: i for i, pair in enumerate(pairs)}
    sums, counts = np.zeros((2, len(pairs), len(groups)))
    for k, part in enumerate(groups):
        for point in part:
            sums[place[point.animals], k] += point.value
            counts[place[point.animals], k] += 1
    return sums, counts


def number(key: tuple[str, str], parts: Sequence[Sequence[Point]], ends: Sequence[float]) -> Number:
    """Return the mean of the accuracies of some groups, with its interval."""
    pairs = len({point.animals for part in parts for point in part})
    value, chance = (np.mean([np.mean([point[k] for point in part]) for part in parts]) for k in (3, 4))
    bounds = [rounded(end) if ends[0] < ends[1] else None for end in ends]  # NaN isn't below anything
    return Number(*key, rounded(value), *bounds, rounded(chance), sum(map(len, parts)), pairs)


def rounded(value: float) -> float:
    return round(float(value), DIGITS)
