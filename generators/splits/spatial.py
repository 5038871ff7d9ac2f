"""Spatial-relation splits (OC-CLIP, appendix A.5.1).

All single-object scenes are in train, with every combination of animal and texture, by default at the heights of the
pairs. For each relation a fraction of the animal pairs is in train, each in one fixed order and in every assignment of
textures; a fraction of those training pairs is in train in the other order too, as hard negatives.

The order is fixed per unordered pair: if it were drawn for ordered pairs, both orders of some pairs would be in train
as hard negatives that nobody requested. Test pairs, validation and views are as in
`menagerie.generators.splits.binding`. Training pairs are drawn for each relation separately, and test pairs and pairs
of validation for all relations together, unless the recipe says otherwise. With `seen_order` the orders of train are
tested too, in new views: a model that fails there hasn't fitted them; a model that fails only on the others hasn't
generalised."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE, Several
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.captions.templates import Content
from menagerie.generators.rules.hold_out import leave_any
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.pair_roles import Pair, PairRecipe, PairRoles, pair_roles

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
    task: ClassVar[str] = "the same words with the two animals swapped"

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
        return self.singles_slots or tuple(slot for name in self.relations for slot in RELATIONS[name].single_slots)

    @property
    def least_visible(self) -> float:
        """Least share of each animal that the other leaves visible, which in places of layouts may hide it."""
        return 0.25 if any(SLOTS[slot].row for name in self.relations for slot in RELATIONS[name].slots) else 0.0

    @property
    def tests(self) -> tuple[str, ...]:
        kinds = (SEEN, *TESTED) if self.seen_order else TESTED
        return tuple(subset_name(relation, kind) for relation in self.relations for kind in kinds)

    def content(self, subset: str, scene: Scene) -> Content:
        """What the caption of a scene says. A training caption may leave out textures; its negative then leaves out the
        same ones."""
        if subset != "train":
            return super().content(subset, scene)
        return CaptionSpec(vars(self)).training_content(scene)._replace(negative=len(scene.objects) == 2)

    def planned(self, world: World) -> dict[str, list[Scene]]:
        """Return the scenes of all subsets except the tests of rules. For one seed, validation and unseen pairs are the
        same at all fractions."""
        singles = self.kept(world, list(world.singles(range(self.singles_views or self.views), self.single_slots)))
        subsets: dict[str, list[Scene]] = {"train": singles, "validation": []}
        for relation in self.relations:
            roles, fixed = roles_of(self, world, relation)
            swapped = [order[::-1] for pair, order in fixed.items() if pair in roles.swapped]
            unseen = [order[::-1] for pair, order in fixed.items() if pair not in roles.swapped]
            seen = [*fixed.values(), *swapped]
            trained = order_scenes(world, seen, RELATIONS[relation].slots, self.train_range)
            subsets["train"] += self.kept(world, trained)
            for name, orders in {
                "validation": both_orders(roles.validation),
                **({subset_name(relation, SEEN): seen} if self.seen_order else {}),
                subset_name(relation, "unseen_order"): unseen,
                subset_name(relation, "unseen_pairs"): both_orders(roles.test_pairs),
            }.items():
                scenes = order_scenes(world, orders, RELATIONS[relation].slots, self.test_range)
                most = self.test_scenes if name != "validation" else -(-self.test_scenes // len(self.relations))
                subsets.setdefault(name, [])
                subsets[name] += self.drawn(world, scenes, most, name, relation)
        return subsets

    def bare(self, world: World) -> list[Scene]:
        """The scenes of all pairs, in both orders of every relation and all textures."""
        orders = both_orders(tuple(world.pairs))
        slots = [RELATIONS[relation].slots for relation in self.relations]
        return [scene for its in slots for scene in order_scenes(world, orders, its, range(1))]

    @property
    def draws(self) -> Mapping[str, tuple[str, ...]]:
        return {relation: () if self.unseen_under == "all" else (relation,) for relation in self.relations}

    def roles(self, world: World, relation: str) -> PairRoles:
        return roles_of(self, world, relation)[0]


def roles_of(recipe: SpatialRecipe, world: World, relation: str) -> tuple[PairRoles, dict[Pair, Pair]]:
    """The roles of all pairs in a relation, and the order of each training pair.

    An order is the animal in the relation's first slot and the one in its second.
    """
    rules = recipe.rules(world)
    free = {pair: free_orders(world, pair, relation, rules) for pair in world.pairs}
    order = {pair: fixed_order(pair, relation, recipe.seed) for pair in world.pairs}
    fixed = {pair: order[pair] if order[pair] in free[pair] else free[pair][0] for pair in world.pairs if free[pair]}
    roles = pair_roles(
        recipe,
        world,
        relation,
        shared=recipe.unseen_under == "all",
        trainable=fixed.__contains__,
        swappable=lambda pair: len(free[pair]) == 2,
    )
    return roles, {pair: fixed[pair] for pair in roles.train}


def free_orders(world: World, pair: Pair, relation: str, rules: tuple[Rule, ...]) -> list[Pair]:
    """The orders of a pair for which the rules leave a scene."""
    orders, slots = [pair, pair[::-1]], RELATIONS[relation].slots
    if not rules:
        return orders
    return [order for order in orders if leave_any(rules, world, order_scenes(world, [order], slots, range(1)))]


def fixed_order(pair: Pair, relation: str, seed: int) -> Pair:
    """Draw the order of `pair` in train. `roles_of` takes the other one if rules leave no scene in this order."""
    return pair if generator(seed, "order", relation, *pair).random() < 0.5 else pair[::-1]


def both_orders(pairs: tuple[Pair, ...]) -> list[Pair]:
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
