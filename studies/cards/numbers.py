"""The numbers of a card: accuracy of each task of each test, and means of several, with intervals over animal pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from jaxtyping import Float64

from menagerie.studies.analysis.two_levels import accuracy_intervals, statistic_interval
from menagerie.studies.cards.scores import RecordResult

DIGITS = 5
MEANS: Mapping[str, Callable[[str], bool]] = {
    "swaps of all tests": lambda task: task == "swap",
    "all tasks but four-way, of all tests": lambda task: not task.endswith(" score"),
}
"""The means of a card, each with its tasks. Four-way items aren't among them, because they have the captions of swaps
again."""


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


def compute_numbers(points: Iterable[RecordResult]) -> tuple[list[Number], list[Number]]:
    """Return the number of each task of each test, and the means of `MEANS`, in which all tasks have equal weight."""
    groups: dict[tuple[str, str], list[RecordResult]] = {}
    for point in points:
        groups.setdefault((point.subset, point.task), []).append(point)
    pairs = sorted({point.animals for part in groups.values() for point in part})
    sums, counts = sums_by_pair(list(groups.values()), pairs)
    seeds = [0] * len(pairs)
    ends = accuracy_intervals(sums, counts, seeds, pairs).T.tolist()
    single = [make_number(key, [part], ends[k]) for k, (key, part) in enumerate(groups.items())]
    chosen = {name: [k for k, (_, task) in enumerate(groups) if takes(task)] for name, takes in MEANS.items()}
    parts = list(groups.values())
    return single, [
        make_number(
            ("", name),
            [parts[k] for k in of],
            statistic_interval(mean_of_groups, sums[:, of], counts[:, of], seeds, pairs),
        )
        for name, of in chosen.items()
    ]


def mean_of_groups(means: Float64[np.ndarray, "rows groups"]) -> Float64[np.ndarray, " rows"]:
    return means.mean(1).clip(0, 1)


def sums_by_pair(
    groups: Sequence[Sequence[RecordResult]], pairs: Sequence[str]
) -> tuple[Float64[np.ndarray, "pairs groups"], Float64[np.ndarray, "pairs groups"]]:
    """Sum up the points and the number of records of each animal pair in each group."""
    place = {pair: i for i, pair in enumerate(pairs)}
    sums, counts = np.zeros((2, len(pairs), len(groups)))
    for k, part in enumerate(groups):
        for point in part:
            sums[place[point.animals], k] += point.value
            counts[place[point.animals], k] += 1
    return sums, counts


def make_number(key: tuple[str, str], parts: Sequence[Sequence[RecordResult]], ends: Sequence[float]) -> Number:
    """Return the mean of the accuracies of some groups, with its interval."""
    pairs = len({point.animals for part in parts for point in part})
    value, chance = (np.mean([np.mean([point[k] for point in part]) for part in parts]) for k in (3, 4))
    bounds = [round_number(end) if ends[0] < ends[1] else None for end in ends]  # NaN isn't below anything
    return Number(*key, round_number(value), *bounds, round_number(chance), sum(map(len, parts)), pairs)


def round_number(value: float) -> float:
    return round(float(value), DIGITS)
