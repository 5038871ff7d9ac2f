"""Spatial-relation splits (OC-CLIP, appendix A.5.1).

All single-object scenes are in train, with every combination of animal and texture, by default at the heights of the
pairs. For each relation a fraction of the animal pairs is in train, each in one fixed order and in every assignment of
textures; a fraction of those training pairs is in train in the other order too, as hard negatives.

The order is fixed per unordered pair: if it were drawn for ordered pairs, both orders of some pairs would be in train
as hard negatives that nobody requested. Test pairs, validation and views are as in
`menagerie.generators.splits.binding`. Training pairs are drawn for each relation separately, and test pairs and pairs
of validation for all relations together, unless the recipe says otherwise (`unseen_under`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE, Several
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World
from menagerie.generators.captions.hard_negatives.tasks import tasks_named
from menagerie.generators.splits.facts import (
    Claim,
    Fact,
    claim_has_all,
    claim_has_none,
    order_facts,
    pair_facts,
    reversed_order_facts,
)
from menagerie.generators.splits.pair_roles import Pair, PairRecipe, SeedWords

TESTED = ("unseen_order", "unseen_pairs")
SEEN = "seen_order"


def subset_name(relation: str, kind: str) -> str:
    """The name of a test subset: "left_right_unseen_order"."""
    return f"{relation.replace('/', '_')}_{kind}"


@dataclass(frozen=True)
class SpatialRecipe(PairRecipe):
    """Everything that determines a spatial split, apart from the resolution."""

    kind: ClassVar[str] = "spatial"
    relational: ClassVar[bool] = True
    title: ClassVar[str] = "Spatial relations"
    swap_words: ClassVar[str] = "the same words with the two animals swapped"
    exchanges: ClassVar[str] = "slot"
    swapped_pairs: ClassVar[str] = "in both orders"
    tasks = tasks_named(
        *("swap size", "replace texture", "replace animal", "replace size", "replace relation", "add attribute"),
        "add relation",
    )

    views: int = 2
    """Views of each training scene; 4 textures already give a pair 16 assignments."""
    template: str = "relation"
    """Template of the captions: OC-CLIP's (relation), in PUG's style (pug-relation), or one of several phrasings
    for each scene (free-relation); see docs/splits.md."""
    relations: Annotated[tuple[str, ...], FIRST, Several(1)] = ("left/right", "above/under")
    """Relations of the scenes, which captions state."""
    singles_slots: Annotated[tuple[str, ...], FIRST, Several()] = ()
    """Slots of single-object scenes; empty: at the heights of the pairs. With "center" only, no single animal is
    high up, and a model can learn what is above as if it were an attribute."""
    singles_views: Annotated[int, FIRST] = 0
    """Views of each single-object scene in train, at most `views`; 0: as many as `views`."""
    unseen_under: Annotated[Literal["all", "own"], FIRST] = "all"
    """Where training never shows an unseen pair or one of validation: in all relations, or in the tested one (own).
    With own they are drawn for each relation, and training shows some of them in the other one."""

    mentioned: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that an animal of a training pair is mentioned in its caption; one always is. Below 1, `add relation`
    is tested."""
    attributes: Annotated[float, FIRST, SHARE] = 1.0
    """Probability that a training caption includes the texture of an animal that it mentions."""
    seen_order: Annotated[bool, FIRST] = False
    """Also test the orders of training, in test views: a test `seen_order` of each relation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for relation in self.relations:
            choose("relation", relation, RELATIONS)
        for slot in self.singles_slots:
            choose("slot", slot, SLOTS)

    @property
    def single_slots(self) -> tuple[str, ...]:
        """Slots of single-object scenes in train."""
        return self.singles_slots or tuple(slot for name in self.relations for slot in RELATIONS[name].single_slots)

    @property
    def least_visible(self) -> float:
        """Least share of each animal that the other leaves visible, which in places of layouts may hide it."""
        return 0.25 if any(SLOTS[slot].row for name in self.relations for slot in RELATIONS[name].slots) else 0.0

    @property
    def tests(self) -> tuple[str, ...]:
        kinds = (SEEN, *TESTED) if self.seen_order else TESTED
        return tuple(subset_name(relation, kind) for relation in self.relations for kind in kinds)

    def lacks(self, subset: str) -> Claim | None:
        """The order, or the pair: in all relations or, if `unseen_under` is own, in its own."""
        if subset.endswith("unseen_order"):
            return claim_has_none(order_facts)
        return claim_has_none(self.apart) if subset == "validation" or subset.endswith("unseen_pairs") else None

    def has(self, subset: str) -> Claim | None:
        """The order, or in a test of unseen orders the reversed one."""
        if subset.endswith("unseen_order"):
            return claim_has_all(reversed_order_facts)
        return claim_has_all(order_facts) if subset.endswith(SEEN) else None

    def apart(self, scene: Scene) -> Iterable[Fact]:
        """The pair of animals; if `unseen_under` is own, in its relation."""
        return pair_facts(scene) if self.unseen_under == "all" else (*order_facts(scene), *reversed_order_facts(scene))

    def claims(self, subsets: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[str]]]:
        """Pairs are in the recipe's relations, in tests of one relation in that one."""
        for name, records in subsets.items():
            of_test = [relation for relation in self.relations if name.startswith(subset_name(relation, ""))]
            allowed = of_test or self.relations
            strange = (s.key for s in records.scenes if len(s.objects) > 1 and s.relation not in allowed)
            yield f"every pair of {name} is in a requested relation", strange

    def plan(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets except the tests of rules. For one seed, validation and unseen pairs are the
        same at all fractions."""
        singles = self.keep(world, list(world.singles(range(self.singles_views or self.views), self.single_slots)))
        subsets: dict[str, list[Scene]] = {"train": singles, "validation": []}
        for relation in self.relations:
            roles, fixed = self.roles(world, relation)
            swapped = [order[::-1] for pair, order in fixed.items() if pair in roles.swapped]
            unseen = [order[::-1] for pair, order in fixed.items() if pair not in roles.swapped]
            seen = [*fixed.values(), *swapped]
            trained = order_scenes(world, seen, RELATIONS[relation].slots, self.train_range)
            subsets["train"] += self.keep(world, trained)
            for name, orders in {
                "validation": ordered_both_ways(roles.validation),
                **({subset_name(relation, SEEN): seen} if self.seen_order else {}),
                subset_name(relation, "unseen_order"): unseen,
                subset_name(relation, "unseen_pairs"): ordered_both_ways(roles.test_pairs),
            }.items():
                scenes = order_scenes(world, orders, RELATIONS[relation].slots, self.test_range)
                most = self.test_scenes if name != "validation" else -(-self.test_scenes // len(self.relations))
                subsets.setdefault(name, [])
                subsets[name] += self.sample(world, scenes, most, name, relation)
        return subsets

    def scenes_in_one_view(self, world: World) -> list[Scene]:
        """The scenes of all pairs, in both orders of every relation and all textures."""
        orders = ordered_both_ways(tuple(world.pairs))
        slots = [RELATIONS[relation].slots for relation in self.relations]
        return [scene for its in slots for scene in order_scenes(world, orders, its, range(1))]

    @property
    def seed_words(self) -> Mapping[str, SeedWords]:
        own = self.unseen_under == "own"
        return {relation: ((relation,), (relation,) if own else ()) for relation in self.relations}

    def variants(self, world: World, pair: Pair, relation: str) -> list[Pair]:
        """The orders of a pair: the animal in the relation's first slot, and the one in its second."""
        return [pair, pair[::-1]]

    def draw_variant(self, pair: Pair, relation: str, variants: Sequence[Pair]) -> Pair:
        order = draw_order(pair, relation, self.seed)
        return order if order in variants else variants[0]

    def variant_scenes(self, world: World, pair: Pair, relation: str, order: Pair) -> list[Scene]:
        return order_scenes(world, [order], RELATIONS[relation].slots, range(1))


def draw_order(pair: Pair, relation: str, seed: int) -> Pair:
    """Draw the order of `pair` in train, unless rules leave no scene in this order."""
    return pair if generator(seed, "order", relation, *pair).random() < 0.5 else pair[::-1]


def ordered_both_ways(pairs: tuple[Pair, ...]) -> list[Pair]:
    """Every pair in both orders."""
    return [order for pair in pairs for order in permutations(pair)]


def order_scenes(world: World, orders: list[Pair], slots: tuple[str, ...], views: range) -> list[Scene]:
    """Ordered pairs in two slots, in all textures, over all backgrounds and `views`."""
    return [
        Scene(background, (Object(first, texture, slots[0]), Object(second, other, slots[1])), view)
        for view, background, (first, second), texture, other in product(
            views, world.backgrounds, orders, world.textures, world.textures
        )
    ]


KIND = SpatialRecipe
