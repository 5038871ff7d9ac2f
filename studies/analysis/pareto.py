"""What Pareto fronts and bounds say: who dominates whom, hypervolumes, images to a target. Free of files."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from studies.analysis.surrogate import CHANCE
from studies.analysis.two_levels import CONFIDENCE, FEW, FEWEST, RESAMPLES, few_pairs

# Points and number of test records by animal pair.
Tally = dict[str, list[int | float]]


class Axis(NamedTuple):
    """From where to where distinct images are counted: the least and the most of the space."""

    least: int
    most: int

    def saved(self, images: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Share of the way, in logarithms, from the most images to the least."""
        return 1 - np.log(images / self.least) / math.log(self.most / self.least)


class Bound(NamedTuple):
    """Images that reach a target; or, censored, the most that did not."""

    images: int
    censored: bool

    def __str__(self) -> str:
        return f"> {self.images}" if self.censored else str(self.images)


def front(images: Sequence[int], accuracy: Sequence[float]) -> list[int]:
    """Indices of the settings that no other beats with as few images and as high accuracy, fewest first."""
    order = sorted(range(len(images)), key=lambda k: (images[k], -accuracy[k]))
    best, kept = -math.inf, []
    for k in order:
        if accuracy[k] > best:
            best = accuracy[k]
            kept.append(k)
    return kept


def hypervolume(
    images: Float64[np.ndarray, " n"], accuracy: Float64[np.ndarray, "... n"], axis: Axis
) -> Float64[np.ndarray, "..."]:
    """Share of the plane that the settings dominate: 0 at the reference point, the most images and
    chance; 1 where the least images give 100 %. Images count by their logarithm."""
    order = np.argsort(images, kind="stable")
    saved = np.clip(axis.saved(images[order]), 0, 1)
    heights = np.clip((accuracy[..., order] - CHANCE) / (1 - CHANCE), 0, 1)
    best = np.maximum.accumulate(heights, axis=-1)  # more images never make it worse
    widths = saved - np.append(saved[1:], 0.0)
    return np.asarray((best * widths).sum(-1))


class Curve(NamedTuple):
    """The chosen settings of one model: their images, and their tests by seed and animal pair.

    A tally is {pair: [points, number]}, one for each seed of each setting.
    """

    images: list[int]
    tests: list[list[Tally]]


def median_accuracy(tests: Sequence[Tally]) -> float:
    """Median over seeds of the accuracy of one setting."""
    shares = [np.sum(list(tally.values()), axis=0) for tally in tests]
    return float(np.median([points / number for points, number in shares]))


def resampled(curve: Curve, weights: Sequence[Float64[np.ndarray, "r k"]]) -> Float64[np.ndarray, "r p"]:
    """Accuracy of each setting, median over seeds, with animal pairs weighted anew in each resample."""
    settings = []
    for tests in curve.tests:
        seeds = []
        for weight, tally in zip(weights, tests, strict=True):
            points, numbers = np.array([tally[pair] for pair in sorted(tally)], np.float64).T
            seeds.append(weight @ points / (weight @ numbers))
        settings.append(np.median(seeds, axis=0))
    return np.stack(settings, axis=-1)


class Volume(NamedTuple):
    """A hypervolume, or a difference of two, with its interval; NaN for a test of fewer than `FEWEST` animal pairs."""

    value: float
    low: float
    high: float
    pairs: int
    """Animal pairs of the test, which were drawn."""

    @property
    def interval(self) -> str:
        """Its bounds as text."""
        few = few_pairs(self.pairs)
        if math.isnan(self.low):
            return f"{few}: none"
        return f"{self.low:.3f} to {self.high:.3f}" + (f" ({few})" if self.pairs < FEW else "")


def volumes(curves: dict[str, Curve], axis: Axis, seed: int = 0) -> dict[str, Volume]:
    """Hypervolume of each model's chosen settings on the test, and of each difference to the first.

    Percentile bootstrap over animal pairs, within each seed, the same draw for all models and
    settings: they are tested on the same records. It says how sure the figures are for these seeds
    and settings, not for new ones.
    """
    rng = np.random.default_rng(seed)
    pairs = [len(tally) for tally in next(iter(curves.values())).tests[0]]
    weights = [rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64) for n in pairs]
    ones = [np.ones((1, n)) for n in pairs]
    undefined = math.nan if max(pairs) < FEWEST else 0.0  # draws of so few say nothing of others
    drawn, volume = {}, {}
    for model, curve in curves.items():
        images = np.array(curve.images, np.float64)
        drawn[model] = hypervolume(images, resampled(curve, weights), axis) + undefined
        volume[model] = float(hypervolume(images, resampled(curve, ones), axis)[0])
    first, *others = curves
    own = {model: with_interval(volume[model], drawn[model], max(pairs)) for model in curves}
    return own | {
        f"{model} − {first}": with_interval(volume[model] - volume[first], drawn[model] - drawn[first], max(pairs))
        for model in others
    }


def with_interval(value: float, draws: Float64[np.ndarray, " r"], pairs: int) -> Volume:
    """A value with the percentile interval of its draws of animal pairs."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Volume(value, float(low), float(high), pairs)


def bound(images: Sequence[int], reached: Sequence[bool]) -> Bound:
    """Fewest images that reached a target; if none did, the most that were tried."""
    enough = [count for count, did in zip(images, reached, strict=True) if did]
    return Bound(min(enough), False) if enough else Bound(max(images), True)


def ratio(one: Bound, other: Bound) -> str:
    """How many times the images of the other the one needs; a dash where neither is known."""
    if one.censored and other.censored:
        return "–"
    sign = "> " if one.censored else "< " if other.censored else ""
    return f"{sign}{one.images / other.images:.2f}"
