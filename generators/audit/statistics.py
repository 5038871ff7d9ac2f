"""What chance decides of a scene of two, and how far what it decided may be from what was to be expected.

**Coins.** A test draws from all scenes that its rule of construction allows. Where those are as many with a thing on
the left as with it on the right, a fair coin has decided which of the two was drawn; so it has of the order of mention,
scene by scene, and of the one assignment or order of a pair in `seen_pairs`, `unseen_order` and `seen_order`, pair by
pair. Scenes (or pairs) of one group share a throw.

**Contrasts.** A contrast is a sum over groups of records. Of each group chance alone decides the sign of its part (is
the red animal on the left, or on the right?), or, for numbers, which of several parts it has. Parts of mean zero within
an interval of half-width h have, over independent groups, a sum S with

    P(|S| >= t * sqrt(sum of h^2)) <= 2 exp(-t^2 / 2)

for any number of groups (Hoeffding 1963; no normal approximation). With m contrasts, each at the t where the right side
is `rate` / m, the probability that any of them is above its bound is at most `rate`, however they depend on each other
(Bonferroni). Groups of which both sides are in the subset sum to zero and count for nothing, as they should.

**Tallies.** A tally is a number of draws, the sum of their chances to come out one way, and how many did. Draws are
independent, or without replacement from a known set, which spreads less (Hoeffding 1963, theorem 4). Then, with p the
mean chance,

    P(share of n draws at least as far from p as q, on that side) <= exp(-n D(q || p))

where D is the divergence of two coins (theorem 1; no normal approximation, for any n and p). With m tallies and both
sides, the probability that any has an n D above log(2 m / rate) is at most `rate`, however they depend on each other
(Bonferroni). So a small split, of which little can be said, is never said to be wrong by more than chance.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import inf, log, sqrt
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.generators.audit.findings import Finding
from menagerie.generators.captions.hard_negatives.swaps import swap_places, swap_textures
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.rules.rule import Rule


class Contrast(NamedTuple):
    """A sum over groups that measures whether chance decided evenly: the statement it measures, the subset, and
    counts of records."""

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


TALLY_RATE = 1 / 10_000
"""The most sound splits of which a finding by tallies fails by chance."""
IMPOSSIBLE = 1e-9  # of a sum of chances: rounding


class Tally(NamedTuple):
    """A count to be compared with its expectation: the thing counted, the records, the number of draws, the count,
    and the least and most expected."""

    what: str
    where: str
    draws: int
    count: int
    least: float
    most: float

    @property
    def expected(self) -> float:
        """The expected count; where a range is expected, the end of it that is nearest to the count."""
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
    for seen, chance in ((count, expected), (draws - count, draws - expected)):
        if seen:
            total += seen * log(seen / chance) if chance > IMPOSSIBLE else inf
    return total


class Tallies:
    """Tallies by what they count and where."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], list] = {}

    def add(self, what: str, where: str, count: int, chance: float, draws: int = 1, most: float | None = None) -> None:
        """Some draws of one chance, or of one from `chance` to `most`, of which `count` came out so."""
        sums = self._sums.setdefault((what, where), [0, 0, 0.0, 0.0])
        for i, number in enumerate((draws, count, chance * draws, (chance if most is None else most) * draws)):
            sums[i] += number

    def __iter__(self) -> Iterator[Tally]:
        return (Tally(*names, *sums) for names, sums in self._sums.items())

    def __len__(self) -> int:
        return len(self._sums)

    def finding(self, claim: str) -> Finding:
        """Whether the most surprising tally is within what chance allows."""
        strongest = max(self, key=lambda tally: tally.evidence, default=None)
        if strongest is None:
            return Finding(claim, True, "nothing was drawn")
        limit = log(2 * len(self) / TALLY_RATE)
        detail = f"{len(self)} tallies, the strongest {strongest.evidence:.1f}, bound {limit:.1f}: {strongest.text}"
        return Finding(claim, strongest.evidence <= limit, detail)


class Coin(NamedTuple):
    """A fair coin: the group of scenes that share its fall, and the scene that the other side gives."""

    group: Callable[[Scene], Hashable]
    other: Callable[[Scene], Scene]


def by_scene(scene: Scene) -> Hashable:
    return scene


def by_pair(scene: Scene) -> Hashable:
    """All scenes of two animals in one relation."""
    return scene.relation, frozenset(thing.animal for thing in scene.things)


def by_places(scene: Scene) -> Hashable:
    """A scene and the one with its two things in each other's places, in whatever sizes and facings."""
    things = frozenset((thing.animal, thing.texture) for thing in scene.things)
    return scene.background, scene.view, scene.relation, things


def by_textures(scene: Scene) -> Hashable:
    """A scene and the one with its two textures exchanged, in whatever sizes and facings."""
    places = tuple((place_of(thing.slot), thing.animal) for thing in scene.things)
    return scene.background, scene.view, places, frozenset(thing.texture for thing in scene.things)


MENTION = Coin(by_scene, lambda scene: scene)
PLACES = Coin(by_places, swap_places)
TEXTURES = Coin(by_textures, swap_textures)
PAIR_TEXTURES = Coin(by_pair, swap_textures)
PAIR_PLACES = Coin(by_pair, swap_places)


def coin_of(signs: str, kind: str, subset: str) -> Coin | None:
    """The coin that decides a product of signs (`balance.SIGNS`) in a test; None if none does.

    Animals of dependence splits have one texture each in a test, by construction.
    """
    if "m" in signs:
        return MENTION
    if kind == "spatial":
        if "a" in signs:
            return TEXTURES
        return PAIR_PLACES if subset.endswith("seen_order") else PLACES  # unseen_order too
    if "p" in signs:
        return PLACES
    if kind == "binding":
        return PAIR_TEXTURES if subset == "seen_pairs" else TEXTURES
    return None


def answer_coin(kind: str, subset: str) -> Coin | None:
    """The coin that decides which of a record's two texts is the true one."""
    return coin_of("p" if kind == "spatial" else "a", kind, subset)


def is_open(coin: Coin, rules: Sequence[Rule], scene: Scene) -> bool:
    """Whether hold-out rules leave the coin both its sides: they are true of both scenes or of neither."""
    return not rules or matched(rules, scene) == matched(rules, coin.other(scene))
