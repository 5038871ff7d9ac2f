"""Two-level factorial designs: which level of each factor a run has, so that effects can be told apart.

For up to four factors, all combinations are run. For five or more it is half of them, those in which the product of all
signs is 1 (Box and Hunter 1961, "The 2^(k-p) fractional factorial designs"): of resolution V with five factors and VI
with six. So no main effect shares its contrast with another one or with a pair, and no pair with another pair. With k
factors, an effect of j of them can't be told from the interaction of the k - j others.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float64

ALL = 4  # factors of which all combinations are run
Signs = tuple[int, ...]
"""The level of each factor: -1 for the first, 1 for the second."""
Effect = tuple[str, ...]
"""The factors of an effect: one for a main effect, two for the interaction of a pair, more for higher interactions."""


def design(factors: int) -> list[Signs]:
    """Return the signs of each run of a design of at least one factor."""
    if factors <= ALL:
        return list(product((-1, 1), repeat=factors))
    return [(*signs, prod(signs)) for signs in product((-1, 1), repeat=factors - 1)]


def effects(factors: Sequence[str], most: int = 2) -> Iterator[Effect]:
    """Yield the main effect of each factor, then the interactions of two factors, up to those of `most`."""
    for size in range(1, most + 1):
        yield from combinations(factors, size)


def share_of(squares: "Float64[np.ndarray, 'r effects']", some: Sequence[int]) -> "Float64[np.ndarray, ' r']":
    """Return the share of some effects together, given by their columns, in the sum of all effects' squares. Squares
    without their noise may have sums below 0: that of these effects or that of the others then counts as 0. NaN where
    both do."""
    import numpy as np

    chosen = squares[:, some].sum(1)
    chosen, rest = chosen.clip(0), (squares.sum(1) - chosen).clip(0)
    total = chosen + rest
    return np.divide(chosen, total, out=np.full(len(squares), np.nan), where=total > 0)


def true_shares(
    sums: "Float64[np.ndarray, 'k effects']",
    counts: "Float64[np.ndarray, 'k effects']",
    seeds: Sequence[Hashable],
    asked: Sequence[Sequence[int]],
) -> "Float64[np.ndarray, '3 asked']":
    """Return the share of each set of effects, given by columns, in the sum of all effects' true squares, with its
    interval: value, low and high. `sums` and `counts` are of k clusters, of which `seeds` has the seeds.

    On average a squared estimate is above the true square by the estimate's variance, and the square of a resampled
    one by about twice as much. Both are subtracted. All shares are NaN unless the interval of the sum of what is left
    is above 0: where nothing has an effect there are none. `tests/studies/test_shares.py` simulates how often the
    intervals hold the true share.
    """
    import numpy as np

    from menagerie.studies.analysis.two_levels import CONFIDENCE, enough, resampled_means

    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    if not enough(counts, seeds).all():
        return np.full((3, len(asked)), np.nan)
    noise = variance(sums, counts, seeds)
    squares = (sums.sum(0) / counts.sum(0))[None] ** 2 - noise
    drawn = resampled_means(sums, counts, seeds) ** 2 - 2 * noise
    if np.quantile(drawn.sum(1), tails[0]) <= 0:
        return np.full((3, len(asked)), np.nan)
    return np.stack([[*share_of(squares, some), *np.nanquantile(share_of(drawn, some), tails)] for some in asked], 1)


def variance(
    sums: "Float64[np.ndarray, 'k v']", counts: "Float64[np.ndarray, 'k v']", seeds: Sequence[Hashable]
) -> "Float64[np.ndarray, ' v']":
    """Return the variance of each mean that the differences of seeds show; of a single seed those of its clusters."""
    import numpy as np

    from menagerie.studies.analysis.two_levels import owners

    units = owners(seeds)
    units = units if units.any() else np.arange(len(units))
    member = (units == np.arange(units.max() + 1)[:, None]).astype(float)
    return ((member @ sums) / (member @ counts)).var(0, ddof=1) / len(member)
