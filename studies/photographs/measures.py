"""Accuracies with intervals over seeds and animal pairs, and their differences, from the records of runs."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.studies.analysis.paired_bootstrap import Points, RecordScore
from menagerie.studies.analysis.two_levels import CONFIDENCE, FEWEST, enough, resampled_means, without_interval

RECOGNITION, SWAPS, KNOWN = "recognition", "swaps", "swaps where recognised"
MEASURES = {
    RECOGNITION: "an animal or a texture that the image doesn't show in place of one (tasks replace animal, replace "
    "texture)",
    SWAPS: "two textures or two places exchanged, in the same words (task swap): binding",
    KNOWN: "the same on images of which a model got all tasks of recognition right: what is wrong there isn't a thing "
    "or a texture that it doesn't know",
}
REPLACED = ("replace animal", "replace texture")


class Level(NamedTuple):
    """A mean or a difference of two, with its interval; NaN where there is none."""

    mean: float
    low: float
    high: float
    clusters: int
    signed: bool = False

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        form = (lambda value: f"{100 * value:+.1f}") if self.signed else (lambda value: f"{100 * value:.1f}")
        words = without_interval(self.low, self.high, self.clusters)
        return f"{form(self.mean)} [{words or f'{form(self.low)}, {form(self.high)}'}]"


NOTHING = Level(math.nan, math.nan, math.nan, 0)


def of_test(points: Points, label: str) -> Points:
    """The records of the tests in one world; their keys name the subset alone."""
    found = {}
    for (seed, subset, task, scene, caption), score in points.items():
        world, _, own = subset.rpartition("/")
        if world == label:
            found[seed, own, task, scene, caption] = score
    return found


def measured(points: Points, measure: str) -> Points:
    """The records that a measure is over."""
    if measure == RECOGNITION:
        return {key: score for key, score in points.items() if key[2] in REPLACED}
    swaps = {key: score for key, score in points.items() if key[2] == "swap"}
    if measure == SWAPS:
        return swaps
    unknown = {(*key[:2], key[3]) for key, score in points.items() if key[2] in REPLACED and score.value < 1}
    return {key: score for key, score in swaps.items() if (*key[:2], key[3]) not in unknown}


def without_pairs(points: Points, seen: Callable[[int], set[str]]) -> Points:
    """The records of animal pairs that no training shows; `seen` gives those that one does, by seed."""
    shown = {seed: seen(seed) for seed in {key[0] for key in points}}
    return {key: score for key, score in points.items() if score.animals not in shown[key[0]]}


def level(points: Points) -> Level:
    """The mean of all records."""
    return compared({}, points)[1]


def compared(first: Points, second: Points) -> tuple[Level, Level, Level]:
    """The means of two groups, and the second minus the first: animal pairs are drawn for both together."""
    sums, counts, seeds = tally([first, second])
    if not seeds:
        return NOTHING, NOTHING, NOTHING
    drawn, known, has = resampled_means(sums, counts, seeds), enough(counts, seeds), counts > 0
    means = [mean(sums, counts, group) for group in (0, 1)]
    own = [with_interval(means[k], drawn[:, k], int(has[:, k].sum()), bool(known[k]), 0.0) for k in (0, 1)]
    if not has.any(0).all():
        return *own, NOTHING
    gap = with_interval(means[1] - means[0], drawn[:, 1] - drawn[:, 0], int(has.all(1).sum()), bool(known.all()))
    return *own, gap._replace(signed=True)


def mean(sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], group: int) -> float:
    """The mean of one group; NaN of none."""
    total = counts[:, group].sum()
    return float(sums[:, group].sum() / total) if total else math.nan


def with_interval(
    value: float, drawn: Float64[np.ndarray, " r"], clusters: int, known: bool, least: float = -1.0
) -> Level:
    """A value from `least` to 1 with the percentile interval of its draws, where there are enough clusters."""
    if not known or clusters < FEWEST or np.isnan(drawn).all():
        return Level(value, math.nan, math.nan, clusters)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail]).clip(least, 1)
    return Level(value, float(low), float(high), clusters)


def tally(groups: list[Points]) -> tuple[Float64[np.ndarray, "k v"], Float64[np.ndarray, "k v"], list[int]]:
    """Points and numbers of each animal pair of each seed in each group, and the pairs' seeds."""
    clusters: dict[tuple[int, str], list[list[float]]] = {}
    for number, points in enumerate(groups):
        for key, score in points.items():
            own = clusters.setdefault((key[0], score.animals), [[0.0, 0.0] for _ in groups])
            own[number][0] += score.value
            own[number][1] += 1
    keys = sorted(clusters)
    table = np.array([clusters[key] for key in keys], np.float64).reshape(len(keys), len(groups), 2)
    return table[..., 0], table[..., 1], [seed for seed, _ in keys]


def merged(parts: Iterable[Points]) -> Points:
    """The records of several runs."""
    whole: dict[tuple[int, str, str, str, str], RecordScore] = {}
    for part in parts:
        whole |= part
    return whole
