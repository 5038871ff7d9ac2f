"""How many times the images of another model one needs to a target, with an interval over new seeds. Free of files."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from menagerie.studies.analysis.pareto import Curve, clusters_of
from menagerie.studies.analysis.two_levels import CONFIDENCE, enough, resampled_means


class ImageRatio(NamedTuple):
    """Images of the first over those of the other; infinite where the first never reaches the target, 0 where the other
    never does, NaN where neither does."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        """Its bounds as text."""
        if math.isnan(self.low):
            return "none"
        return f"{bound_text(self.low)} to {bound_text(self.high)}"


def bound_text(ratio: float) -> str:
    """A bound; where one model doesn't reach the target that is said in its place."""
    if math.isinf(ratio):
        return "first out of reach"
    if ratio >= 10:
        return f"{ratio:.0f}"
    return f"{ratio:.2f}" if ratio else "other out of reach"


def image_ratio(first: Curve, other: Curve, target: float, seed: int = 0) -> ImageRatio:
    """The ratio of the fewest images of any setting whose mean over seeds reaches the target.

    The interval is a bootstrap of two levels, seeds and within them animal pairs (`two_levels`), the same draw for both
    models: in each draw the fewest images are looked for anew among the settings that were tried, so it doesn't cover
    what settings in between would give. NaN where half of the draws or more have no ratio, and for two seeds.
    """
    sums, counts, seeds = clusters_of([first, other])
    means = (sums.sum(0) / counts.sum(0))[None]
    drawn = resampled_means(sums, counts, seeds, seed)
    value = ratios(first, other, means >= target)[0]
    its = ratios(first, other, drawn >= target)
    known = its[~np.isnan(its)]
    if not enough(counts, seeds).all() or len(known) <= len(its) / 2:
        return ImageRatio(float(value), math.nan, math.nan)
    tail = (1 - CONFIDENCE) / 2
    low = np.quantile(known, tail, method="lower")  # between a number and infinity there is none
    high = np.quantile(known, 1 - tail, method="higher")
    return ImageRatio(float(value), float(low), float(high))


def ratios(first: Curve, other: Curve, reached: Bool[np.ndarray, "r v"]) -> Float64[np.ndarray, " r"]:
    """The ratio in each draw, by which settings of both reach the target there."""
    count = len(first.images)
    fewest = [
        np.where(mask, np.array(images, np.float64), math.inf).min(1)
        for images, mask in ((first.images, reached[:, :count]), (other.images, reached[:, count:]))
    ]
    both = np.isinf(fewest[0]) & np.isinf(fewest[1])
    return np.divide(fewest[0], fewest[1], out=np.full(len(reached), math.nan), where=~both)
