"""Two-level factorial designs: which level of each factor a run has, so that effects can be told apart.

Up to four factors all combinations are run. From five on it is half of them, those in which the product of all signs is
1 (Box and Hunter 1961, "The 2^(k-p) fractional factorial designs"): of resolution V with five factors and VI with six.
So no main effect shares its contrast with another one or with a pair, and no pair with another pair. What an effect of
j factors can't be told from is the interaction of all the others, k - j of k.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

ALL = 4  # factors of which all combinations are run
Signs = tuple[int, ...]
"""The level of each factor: -1 for the first, 1 for the second."""
Effect = tuple[str, ...]
"""The factors of an effect: one for a main effect, two for a pair."""


def design(factors: int) -> list[Signs]:
    """The runs of a design of at least one factor."""
    if factors <= ALL:
        return list(product((-1, 1), repeat=factors))
    return [(*signs, prod(signs)) for signs in product((-1, 1), repeat=factors - 1)]


def effects(factors: Sequence[str]) -> Iterator[Effect]:
    """The main effect of each factor, then each pair."""
    yield from ((name,) for name in factors)
    yield from combinations(factors, 2)
