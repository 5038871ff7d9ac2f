"""Intervals of numbers that need not be plain means, such as means over groups, or over sets that are right only as a
whole."""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from menagerie.generators.benchmarks.benchmark import Summary
from menagerie.studies.analysis.two_levels import CONFIDENCE, FEWEST

PARTS = 20  # more take longer, and change Student's quantile little


def jackknife_intervals(
    clusters: Sequence[Hashable], numbers: Callable[[Sequence[int]], Mapping[str, Summary]]
) -> dict[str, tuple[float, float]]:
    """Return intervals, nominally of 95 %, of official accuracies. `numbers` computes these for the records at some
    indices.

    A delete-a-group jackknife (Kott 2001, "The delete-a-group jackknife", J. Official Statistics 17, section 2):
    clusters are assigned at random (always alike) to parts of equal size, and each number is computed without one part
    after another. The intervals are for new records and the same model. A number has none if it is undefined, whole or
    without a part; if fewer than five parts have records of it; or if leaving parts out never changes it.
    """
    from scipy.special import stdtrit

    order = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    assigned = np.random.default_rng(0).permutation(len(order)) % PARTS
    part = assigned[[order[cluster] for cluster in clusters]]
    whole = numbers(range(len(clusters)))
    without = [numbers(np.flatnonzero(part != number).tolist()) for number in range(min(PARTS, len(order)))]
    found = {}
    for name, its in whole.items():
        others = [one[name].official for one in without if name in one and one[name].n != its.n]
        if its.official is None or len(others) < FEWEST or None in others:
            continue
        squares = ((np.array(others, np.float64) - its.official) ** 2).sum()
        half = stdtrit(len(others) - 1, (1 + CONFIDENCE) / 2) * np.sqrt((1 - 1 / len(others)) * squares)
        if half:
            low, high = np.clip([its.official - half, its.official + half], 0, 1).tolist()
            found[name] = (low, high)
    return found
