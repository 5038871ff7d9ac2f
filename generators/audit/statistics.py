"""Statistics of the audit: which properties of a scene of two things are drawn, and how far counts may deviate by
chance.

**Coins.** A test draws from all scenes that its rule of construction allows. If a thing is on the left in half of those
scenes, a fair coin decided which scene was drawn. Likewise coins decide the order of mention, scene by scene, and the
one assignment or order of a pair in `seen_pairs`, `unseen_order` and `seen_order`, pair by pair. Scenes (or pairs) of
one group share a toss.

**Contrasts.** A contrast is a sum over groups of records. Within each group chance alone decides the sign of its
contribution (is the red animal on the left, or on the right?), or, for numbers, which of several contributions it has.
Contributions of mean zero within an interval of half-width h have, over independent groups, a sum S with

    P(|S| >= t * sqrt(sum of h^2)) <= 2 exp(-t^2 / 2)

for any number of groups (Hoeffding 1963; no normal approximation). With m contrasts, each at the t where the right side
is `rate` / m, the probability that any of them is above its bound is at most `rate`, even if they depend on each other
(Bonferroni). A group with both outcomes in the subset sums to zero and has no effect, as it should.

**Tallies.** A tally is a number of draws, the expected count of one outcome, and its actual count. Draws are
independent, or without replacement from a known set, which spreads less (Hoeffding 1963, theorem 4). Then, with p the
mean probability,

    P(share of n draws at least as far from p as q, on that side) <= exp(-n D(q || p))

where D is the divergence of two coins (theorem 1; no normal approximation, for any n and p). With m tallies and both
sides, the probability that any has an n D above log(2 m / rate) is at most `rate`, even if they depend on each other
(Bonferroni). So small splits, for which the evidence is weak, don't fail more often than `rate`.
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
    """How much more or less often than by chance a statement is true of a subset's records. `total` sums this over
    groups of records, and `width` is how far chance spreads that sum."""

    what: str
    subset: str
    holds: int  # records for which `what` is true
    records: int
    total: float  # the sum over groups
    width: float  # square root of the sum of squared half-widths

    @property
    def strength(self) -> float:
        """The sum in units of its width; 0 if chance decides nothing."""
        return abs(self.total) / self.width if self.width else 0.0

    @property
    def text(self) -> str:
        """The contrast in words: "red is in the first place in 400 of 400 records of unseen_pairs"."""
        return f"{self.what} in {self.holds} of {self.records} records of {self.subset}"


def signed(what: str, subset: str, signs: Iterable[tuple[Hashable, int]]) -> Contrast:
    """Make a contrast from each record's group and sign: 1 if `what` is true, -1 if false, 0 for neither."""
    sums: dict[Hashable, int] = defaultdict(int)
    holds = records = 0
    for group, sign in signs:
        sums[group] += sign
        holds, records = holds + (sign > 0), records + 1
    width = sqrt(sum(part**2 for part in sums.values()))
    return Contrast(what, subset, holds, records, float(sum(sums.values())), width)


def bound(contrasts: int, rate: float) -> float:
    """The strength that the largest of `contrasts` contrasts exceeds by chance with a probability of at most `rate`."""
    return sqrt(2 * log(2 * max(contrasts, 1) / rate))


TALLY_RATE = 1 / 10_000
"""Largest probability with which a finding by tallies fails by chance for a correct split."""
IMPOSSIBLE = 1e-9  # expected counts below this are rounding errors


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
        """The expected count; within a range of expected counts, the value nearest to the actual count."""
        return min(max(float(self.count), self.least), self.most)

    @property
    def evidence(self) -> float:
        """n times the divergence D(q || p) of the actual from the expected share; 0 if the count is as expected."""
        return divergence(self.count, self.expected, self.draws)

    @property
    def text(self) -> str:
        """The tally in words: "elephant left: 200 of 200 in unseen_pairs, expected 100"."""
        return f"{self.what}: {self.count} of {self.draws} in {self.where}, expected {self.expected:.4g}"


def divergence(count: int, expected: float, draws: int) -> float:
    """n times the divergence D(count / n || expected / n), with n draws; infinite if the count is impossible."""
    total = 0.0
    for seen, chance in ((count, expected), (draws - count, draws - expected)):
        if seen:
            total += seen * log(seen / chance) if chance > IMPOSSIBLE else inf
    return total


def widened(tally: Tally, lost: int) -> Tally:
    """The tally with the counts that are expected if up to `lost` draws lack: all with its outcome, or none."""
    if not (lost and tally.draws):
        return tally
    least = tally.least - (1 - tally.least / tally.draws) * lost
    return tally._replace(least=max(least, 0.0), most=min(tally.most * (1 + lost / tally.draws), tally.draws))


class Tallies:
    """Tallies, one for each outcome in each subset."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], list] = {}
        self._lost: dict[tuple[str, str], int] = {}

    def add(
        self,
        what: str,
        where: str,
        count: int,
        chance: float,
        draws: int = 1,
        most: float | None = None,
        lost: int = 0,
    ) -> None:
        """Add draws, of which `count` had the outcome; its probability is `chance`, or from `chance` to `most`. Up to
        `lost` draws of the whole tally may lack, for a reason that may depend on their outcome."""
        sums = self._sums.setdefault((what, where), [0, 0, 0.0, 0.0])
        for i, number in enumerate((draws, count, chance * draws, (chance if most is None else most) * draws)):
            sums[i] += number
        self._lost[what, where] = max(lost, self._lost.get((what, where), 0))

    def __iter__(self) -> Iterator[Tally]:
        return (widened(Tally(*names, *sums), self._lost[names]) for names, sums in self._sums.items())

    def __len__(self) -> int:
        return len(self._sums)

    def finding(self, claim: str) -> Finding:
        """Make a finding on whether the most surprising tally is within what chance allows."""
        strongest = max(self, key=lambda tally: tally.evidence, default=None)
        if strongest is None:
            return Finding(claim, True, "nothing was drawn")
        limit = log(2 * len(self) / TALLY_RATE)
        detail = f"{len(self)} tallies, the strongest {strongest.evidence:.1f}, bound {limit:.1f}: {strongest.text}"
        return Finding(claim, strongest.evidence <= limit, detail)


class Coin(NamedTuple):
    """A fair draw between two scenes. `group` maps a scene to a key that all scenes of its draw share; `other` maps it
    to the scene that the other result gives."""

    group: Callable[[Scene], Hashable]
    other: Callable[[Scene], Scene]


def by_scene(scene: Scene) -> Hashable:
    return scene


def by_pair(scene: Scene) -> Hashable:
    """A key that scenes share if they show the same two animals in the same relation."""
    return scene.relation, frozenset(thing.animal for thing in scene.things)


def by_places(scene: Scene) -> Hashable:
    """A key that a scene shares with the scene whose two things have exchanged places; ignores sizes and facings."""
    things = frozenset((thing.animal, thing.texture) for thing in scene.things)
    return scene.background, scene.view, scene.relation, things


def by_textures(scene: Scene) -> Hashable:
    """A key that a scene shares with the scene whose two things have exchanged textures; ignores sizes and facings."""
    places = tuple((place_of(thing.slot), thing.animal) for thing in scene.things)
    return scene.background, scene.view, places, frozenset(thing.texture for thing in scene.things)


MENTION = Coin(by_scene, lambda scene: scene)
PLACES = Coin(by_places, swap_places)
TEXTURES = Coin(by_textures, swap_textures)
PAIR_TEXTURES = Coin(by_pair, swap_textures)
PAIR_PLACES = Coin(by_pair, swap_places)


def coin_of(signs: str, kind: str, subset: str) -> Coin | None:
    """The random draw (`Coin`) that decides a product of signs (`balance.SIGNS`) in a test; None if none does.

    In dependence splits, animals have one texture each in a test, so no draw decides textures.
    """
    if "m" in signs:
        return MENTION
    if kind == "spatial":
        if "a" in signs:
            return TEXTURES
        return PAIR_PLACES if subset.endswith("seen_order") else PLACES  # the ending of unseen_order too
    if "p" in signs:
        return PLACES
    if kind in ("binding", "crowd"):
        return PAIR_TEXTURES if subset == "seen_pairs" else TEXTURES
    return None


def answer_coin(kind: str, subset: str) -> Coin | None:
    """The random draw (`Coin`) that decides which of a record's two texts is true."""
    return coin_of("p" if kind == "spatial" else "a", kind, subset)


def is_open(coin: Coin, rules: Sequence[Rule], scene: Scene) -> bool:
    """Whether hold-out rules allow both results of a draw: they match both scenes or neither."""
    return not rules or matched(rules, scene) == matched(rules, coin.other(scene))
