"""Whether what was drawn at random is spread as its recipe says: counts of draws whose chances are known.

A tally is a number of draws, the sum of their chances to come out one way, and how many did. Draws are independent, or
without replacement from a known set, which spreads less (Hoeffding 1963, theorem 4). Then, with p the mean chance,

    P(share of n draws at least as far from p as q, on that side) <= exp(-n D(q || p))

where D is the divergence of two coins (theorem 1; no normal approximation, for any n and p). With m tallies and both
sides, the probability that any has an n D above log(2 m / rate) is at most `rate`, however they depend on each other
(Bonferroni). So a small split, of which little can be said, is never said to be wrong by more than chance.
"""

from collections.abc import Iterator
from math import inf, log
from typing import NamedTuple

from menagerie.generators.audit.findings import Finding

RATE = 1 / 10_000
"""The most sound splits of which a finding by tallies fails by chance."""
IMPOSSIBLE = 1e-9  # of a sum of chances: rounding


class Tally(NamedTuple):
    """What was counted, of which records, in how many draws, how often it was, and how often it should be."""

    what: str
    where: str
    draws: int
    count: int
    least: float
    most: float

    @property
    def expected(self) -> float:
        """The nearest to the count of what should be."""
        return min(max(float(self.count), self.least), self.most)

    @property
    def evidence(self) -> float:
        """n D(q || p); 0 where p is q."""
        return divergence(self.count, self.expected, self.draws)

    @property
    def text(self) -> str:
        """ "elephant left: 200 of 200 in unseen_pairs, expected 100"."""
        return f"{self.what}: {self.count} of {self.draws} in {self.where}, expected {self.expected:.4g}"


def divergence(count: int, expected: float, draws: int) -> float:
    """n D(count / n || expected / n); infinite for what can't be."""
    total = 0.0
    for seen, its in ((count, expected), (draws - count, draws - expected)):
        if seen:
            total += seen * log(seen / its) if its > IMPOSSIBLE else inf
    return total


class Tallies:
    """Tallies by what they count and where."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], list] = {}

    def add(self, what: str, where: str, count: int, chance: float, draws: int = 1, most: float | None = None) -> None:
        """Some draws of one chance, or of one from `chance` to `most`, of which `count` came out so."""
        sums = self._sums.setdefault((what, where), [0, 0, 0.0, 0.0])
        for i, its in enumerate((draws, count, chance * draws, (chance if most is None else most) * draws)):
            sums[i] += its

    def __iter__(self) -> Iterator[Tally]:
        return (Tally(*names, *sums) for names, sums in self._sums.items())

    def __len__(self) -> int:
        return len(self._sums)

    def finding(self, claim: str) -> Finding:
        """Whether the most surprising tally is within what chance allows."""
        strongest = max(self, key=lambda its: its.evidence, default=None)
        if strongest is None:
            return Finding(claim, True, "nothing was drawn")
        limit = log(2 * len(self) / RATE)
        detail = f"{len(self)} tallies, the strongest {strongest.evidence:.1f}, bound {limit:.1f}: {strongest.text}"
        return Finding(claim, strongest.evidence <= limit, detail)
