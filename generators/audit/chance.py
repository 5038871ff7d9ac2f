"""Whether what was drawn at random looks so: sums over groups that chance turns one way or the other.

A contrast is a sum over groups of records. Of each group chance alone decides the sign of its part (is the red animal
on the left, or on the right?), or, for numbers, which of several parts it has. Parts of mean zero within an interval of
half-width h have, over independent groups, a sum S with

    P(|S| >= t * sqrt(sum of h^2)) <= 2 exp(-t^2 / 2)

for any number of groups (Hoeffding 1963; no normal approximation). With m contrasts, each at the t where the right side
is `rate` / m, the probability that any of them is above its bound is at most `rate`, however they depend on each other
(Bonferroni). Groups of which both sides are in the subset sum to zero and count for nothing, as they should.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from math import log, sqrt
from typing import NamedTuple


class Contrast(NamedTuple):
    """One sum over groups: what it says, of which subset, and in how many records."""

    what: str
    subset: str
    holds: int  # records of which `what` is true
    records: int
    total: float  # the sum over groups
    width: float  # square root of the sum of squared half-widths

    @property
    def strength(self) -> float:
        """The sum in units of its width; 0 where there is nothing that chance could turn."""
        return abs(self.total) / self.width if self.width else 0.0

    @property
    def text(self) -> str:
        """ "red is in the first place in 400 of 400 records of unseen_pairs"."""
        return f"{self.what} in {self.holds} of {self.records} records of {self.subset}"


def signed(what: str, subset: str, signs: Iterable[tuple[Hashable, int]]) -> Contrast:
    """The contrast of (group, 1 or -1) of every record; 1 where `what` is true, 0 for half true."""
    sums: dict[Hashable, int] = defaultdict(int)
    holds = records = 0
    for group, sign in signs:
        sums[group] += sign
        holds, records = holds + (sign > 0), records + 1
    width = sqrt(sum(part**2 for part in sums.values()))
    return Contrast(what, subset, holds, records, float(sum(sums.values())), width)


def bound(contrasts: int, rate: float) -> float:
    """The strength that any of so many contrasts exceeds with a probability of at most `rate`."""
    return sqrt(2 * log(2 * max(contrasts, 1) / rate))
