"""Two-level factorial designs: which level of each factor a run has, so that effects can be separated.

For up to four factors, all combinations are run. For five or more it is half of them, those in which the product of all
signs is 1 (Box and Hunter 1961, "The 2^(k-p) fractional factorial designs"): of resolution V with five factors and VI
with six. So no main effect shares its contrast with another one or with a pair, and no pair with another pair. With k
factors, an effect of j of them can't be separated from the interaction of the k - j others.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

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
