"""Pareto fronts, numbers of images to a target and their ratios. Reads no files."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from menagerie.studies.analysis.intervals import CONFIDENCE, has_interval, resampled_means

if TYPE_CHECKING:
    import pandas as pd

# Points and number of test records, by animal pair.
PairSums = dict[str, list[int | float]]


class Bound(NamedTuple):
    """The fewest images that reached a target; if none did (a censored observation), the most that were tried."""

    images: int
    censored: bool

    def __str__(self) -> str:
        return f"> {self.images}" if self.censored else str(self.images)


def pareto_front(images: Sequence[int | float], accuracy: Sequence[float]) -> list[int]:
    """Return the indices of the settings on the Pareto front, the cheapest first."""
    order = sorted(range(len(images)), key=lambda k: (images[k], -accuracy[k]))
    best, kept = -math.inf, []
    for k in order:
        if accuracy[k] > best:
            best = accuracy[k]
            kept.append(k)
    return kept


class Curve(NamedTuple):
    """The chosen settings of one model: their numbers of images, and for each setting its `PairSums` with each seed."""

    images: list[int]
    tests: list[list[PairSums]]


def accuracies(tests: Sequence[PairSums]) -> list[float]:
    shares = [np.sum(list(sums.values()), axis=0) for sums in tests]
    return [float(points / number) for points, number in shares]


def tallies_by_seed(points: "pd.DataFrame") -> list[PairSums]:
    """Sum up the values and the number of records of each animal pair, for each seed."""
    return [
        {animals: [float(values.sum()), len(values)] for animals, values in part.groupby("animals")["value"]}
        for _, part in points.groupby("seed")
    ]


def fewest_images(images: Sequence[int], reached: Sequence[bool]) -> Bound:
    enough = [count for count, did in zip(images, reached, strict=True) if did]
    return Bound(min(enough), False) if enough else Bound(max(images), True)


def bound_ratio(one: Bound, other: Bound) -> str:
    """Write the ratio of the first bound to the other; a dash if neither reached the target."""
    if one.censored and other.censored:
        return "–"
    sign = "> " if one.censored else "< " if other.censored else ""
    return f"{sign}{one.images / other.images:.2f}"


def compare_bounds(one: str, needs: Bound, other: str, rival: Bound) -> str:
    """Write which of two models reached the target, with how many images, and what follows for their ratio."""
    mine, theirs = needs.images, rival.images
    if needs.censored and rival.censored:
        return f"neither reached the target, {one} with up to {mine} images and {other} with up to {theirs}"
    times, reached = f"{mine / theirs:.2f} times as many", "reached the target on validation with"
    if needs.censored:
        return f"{other} {reached} {theirs} images, {one} not even with {mine}: {one} needs more than {times}"
    if rival.censored:
        return f"{one} {reached} {mine} images, {other} not even with {theirs}: {one} needs less than {times}"
    return f"{one} {reached} {mine} images, {other} with {theirs}: {one} needs {times}"


class ImageRatio(NamedTuple):
    """The ratio of two models' images; infinite if the first never reaches the target, 0 if the other, NaN if both."""

    value: float
    low: float
    high: float
    unknown: float
    """The share of draws in which neither reaches it, from 0 to 1."""

    @property
    def interval(self) -> str:
        if math.isnan(self.value) or math.isnan(self.low):
            return "none"
        without = f"neither reaches the target in {100 * self.unknown:.2g} % of draws"
        if self.unknown > 1 - CONFIDENCE:
            return f"unbounded: {without}"
        certain = self.low == self.high and bool(self.low) and math.isfinite(self.low)
        shown = "no spread: no interval" if certain else f"{bound_text(self.low)} to {bound_text(self.high)}"
        return f"{shown} ({without})" if self.unknown else shown


def bound_text(ratio: float) -> str:
    """Write a bound of a ratio, or which model doesn't reach the target."""
    if math.isinf(ratio):
        return "first out of reach"
    if ratio >= 10:
        return f"{ratio:.0f}"
    return f"{ratio:.2f}" if ratio else "other out of reach"


def image_ratio(first: Curve, other: Curve, target: float) -> ImageRatio:
    """Return the ratio of the smallest numbers of images whose settings, averaged over seeds, reach the target. All
    settings must be tested on the same records.

    The interval is over draws of the means of all settings of both models (`resampled_means`), among settings that were
    tried; NaN if `has_interval` is False. Draws without a ratio are left out; above 5 % of them it is unbounded."""
    keys = [(seed, pair) for seed, sums in enumerate(first.tests[0]) for pair in sorted(sums)]
    columns = [[tests[seed][pair] for seed, pair in keys] for tests in (*first.tests, *other.tests)]
    (sums, counts), of = np.array(columns, np.float64).T, ([seed for seed, _ in keys], [pair for _, pair in keys])
    draws = np.concatenate([(sums.sum(0) / counts.sum(0))[None], resampled_means(sums, counts, *of)])
    value, *by_draw = ratios(first, other, draws >= target).tolist()
    known, ends, tail = [its for its in by_draw if not math.isnan(its)], (math.nan, math.nan), (1 - CONFIDENCE) / 2
    unknown = (len(by_draw) - len(known)) / len(by_draw)
    if has_interval(counts, *of).all():
        ends = 0.0, math.inf
        if unknown <= 1 - CONFIDENCE:  # between a number and infinity there is none
            ends = np.quantile(known, tail, method="lower"), np.quantile(known, 1 - tail, method="higher")
    return ImageRatio(value, float(ends[0]), float(ends[1]), unknown)


def ratios(first: Curve, other: Curve, reached: Bool[np.ndarray, "r v"]) -> Float64[np.ndarray, " r"]:
    """Return the ratio in each draw; `reached` says which settings of `first` and then `other` reach the target."""
    images = np.where(reached, np.array([*first.images, *other.images], np.float64), math.inf)
    mine, its = (part.min(1) for part in np.split(images, [len(first.images)], axis=1))
    return np.divide(mine, its, out=np.full(len(reached), math.nan), where=np.isfinite(mine) | np.isfinite(its))
