"""Statistics of several accuracies together: gains, slopes, and effective robustness. Intervals take them at means that
may leave the range from 0 to 1, and each statistic is clipped to the range that accuracies can give it.

Relative robustness is a gain: tau = acc2 of one model minus acc2 of another, where acc2 is the accuracy on what is
unseen (Taori et al. 2020, Measuring robustness to natural distribution shifts in image classification, section 2).
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64
from scipy.special import expit, logit

from menagerie.studies.frame.estimate import rise

STEP = 0.1  # of coverage and of information, for which slopes are stated
BEFORE, AFTER = 0.3, 0.4  # coverages between which Uselis et al. saw accuracy jump
LEAST = 0.005  # share by which an accuracy is kept from 0 and 1 on the scale of log-odds
Means = Float64[np.ndarray, "rows groups"]
Values = Float64[np.ndarray, " rows"]
gain = rise
Statistic = Callable[[Means], Values]


def gain_from(chances: Sequence[float]) -> Statistic:
    """Return how far the second of two groups is above the first, each as a share of the way from chance to 1."""
    first, second = chances

    def more(means: Means) -> Values:
        both = (means - np.array(chances)) / (1 - np.array(chances))
        return np.clip(both[:, 1] - both[:, 0], -1 / (1 - second), 1 / (1 - first))

    return more


def mean_gain(means: Means) -> Values:
    """Return how far the second half of the groups is above the first half, on average."""
    first, second = np.split(means, 2, axis=1)
    return np.clip((second - first).mean(1), -1, 1)


def effective_robustness(models: int) -> Statistic:
    """Return a statistic, effective robustness averaged over some models: the accuracy on what is unseen minus what the
    baseline's fit predicts from the accuracy on what is seen (Taori et al. 2020, section 2: rho(f) = acc2(f) -
    beta(acc1(f)), where beta is linear in log-odds). The groups are the models' accuracies on what is seen, then on
    what is unseen, and then the baseline's, likewise."""

    def above(means: Means) -> Values:
        own, base = np.split(means[:, : 2 * models], 2, axis=1), np.split(means[:, 2 * models :], 2, axis=1)
        x, y = (logit(np.clip(its, LEAST, 1 - LEAST)) for its in base)
        spread = x - x.mean(1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):  # without a spread there is no line, and no number
            slope = (spread * y).sum(1, keepdims=True) / (spread**2).sum(1, keepdims=True)
        seen = logit(np.clip(own[0], LEAST, 1 - LEAST))
        expected = y.mean(1, keepdims=True) + slope * (seen - x.mean(1, keepdims=True))
        return np.clip((own[1] - expit(expected)).mean(1), -1, 1)

    return above


def slope_along(x: Sequence[float]) -> Statistic:
    """Return a statistic: how much the means rise per `STEP` of `x`, by least squares."""
    spread = np.array(x) - np.mean(x)
    return clip_to_range(lambda means: STEP * (means @ spread) / (spread @ spread), len(x))


def clip_to_range(function: Statistic, groups: int) -> Statistic:
    """Clip a weighted sum of means, whose weights add up to 0, to the range that means from 0 to 1 allow."""
    most = np.abs(function(np.eye(groups))).sum() / 2
    return lambda means: np.clip(function(means), -most, most)


def jump_along(coverages: Sequence[float]) -> Statistic | None:
    """Return a statistic: how much more the means rise per `STEP` of coverage between the two nearest coverages that
    enclose 30 to 40 % than elsewhere; None if no coverages enclose these, or none lie elsewhere."""
    low = [k for k, share in enumerate(coverages) if share <= BEFORE]
    high = [k for k, share in enumerate(coverages) if share >= AFTER]
    if not low or not high or len(coverages) < 3 or (low[-1], high[0]) == (0, len(coverages) - 1):
        return None
    a, b = low[-1], high[0]
    inside, outside = coverages[b] - coverages[a], coverages[-1] - coverages[0] - (coverages[b] - coverages[a])

    def more(means: Means) -> Values:
        there = means[:, b] - means[:, a]
        return STEP * (there / inside - (means[:, -1] - means[:, 0] - there) / outside)

    return clip_to_range(more, len(coverages))
