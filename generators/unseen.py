"""What tests call unseen, and which records another training makes that untrue of.

The names of tests speak of the test's own split. Another training may have had what a test calls unseen. So a record is
left out of a model's numbers if its training had the record's image, or had what the subset says that training lacks:

- `unseen_pairs`, and validation of binding and spatial splits: the pair (with `unseen_under` "own", in its relation);
- `seen_pairs`: the arrangement; `different_bag`: the arrangement or its swap; `unseen_order`: the order;
- `one_unseen_composition`, `two_unseen_compositions`: so many compositions of the scene or its swap that fewer are
  unseen than the name says; `unseen_textures`, and validation of dependence splits: one of the compositions;
- `unseen_counts`, and validation of counting splits: several of the animal;
- `unseen_N` of multi-object scenes: one of the exchanged objects' compositions, as they are or exchanged;
- `held_out`: a scene that the same rule matches.

All other subsets (`train_pairs`, `seen_…`, searches, triplets, probe sets) say only that their images are new. A
four-way item is also left out if training had its counterfactual's image."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

from menagerie.envs.relations import relation_from
from menagerie.envs.scene import Scene
from menagerie.generators.captions.hard_negatives.swaps import SWAPS, exchanged
from menagerie.generators.rules.hold_out import HELD_OUT, matches_any, recorded_rules
from menagerie.generators.splits.latin_square import COMPOSITION_TESTS, unseen_in
from menagerie.generators.storage.split_file import Split

Fact = tuple[Any, ...]
COMPOSITION, PAIR, ARRANGEMENT, ORDER = "composition", "pair", "arrangement", "order"


def had_of(split: Split, subset: str, facts: frozenset[Fact], scenes: Sequence[Scene]) -> Callable[[Scene], bool]:
    """Return a function that says of a scene whether training had what `subset` says that training lacks."""
    kind = split.recipe["kind"]
    swap = SWAPS[kind]
    if subset.startswith(HELD_OUT):
        rules = recorded_rules(split.recipe, split.vocabulary)
        known = [rule for rule in rules if any(map(rule.matches, scenes))]
        return lambda scene: matches_any(known, scene)
    if subset in COMPOSITION_TESTS:
        shown = frozenset(fact[1:] for fact in facts if fact[0] == COMPOSITION)
        return lambda scene: (
            unseen_in(shown, *zip(*(t[:2] for t in scene.objects), strict=True)) < COMPOSITION_TESTS[subset]
        )
    lacks = LACKS.get((kind, "validation" if subset == "validation" else ending(kind, subset)))
    if kind == "spatial" and lacks is pairs_in and split.recipe["unseen_under"] == "own":
        lacks = both_orders
    return lambda scene: lacks is not None and not facts.isdisjoint(lacks(scene, swap))


def ending(kind: str, subset: str) -> str:
    """The part of a subset's name that says what is unseen: without the relation, or the number of objects."""
    if kind == "spatial":
        return next((name for name in ("unseen_order", "unseen_pairs") if subset.endswith(name)), subset)
    return subset.rpartition("_")[0] if kind == "multi-object" else subset


Swap = Callable[[Scene], Scene]


def facts_of(scene: Scene) -> Iterator[Fact]:
    """Yield the compositions, pairs, arrangements and orders of a scene."""
    for of_a_kind in (compositions_in, pairs_in, arrangements_in, orders_in):
        yield from of_a_kind(scene)


def compositions_in(scene: Scene, swap: Swap | None = None) -> Iterator[Fact]:
    return ((COMPOSITION, *obj[:2]) for obj in scene.objects)


def pairs_in(scene: Scene, swap: Swap | None = None) -> Iterator[Fact]:
    return ((PAIR, *sorted(both)) for both in combinations([obj.animal for obj in scene.objects], 2))


def arrangements_in(scene: Scene, swap: Swap | None = None) -> Iterator[Fact]:
    return ((ARRANGEMENT, *sorted(both)) for both in combinations([obj[:2] for obj in scene.objects], 2))


def orders_in(scene: Scene, swap: Swap | None = None) -> Iterator[Fact]:
    """Yield the relation of every two objects, and their animals, the left, upper or foremost one first."""
    for one, other in permutations(scene.objects, 2):
        if relation := relation_from(one.slot, other.slot):
            yield (ORDER, relation, one.animal, other.animal)


def both_bags(scene: Scene, swap: Swap) -> list[Fact]:
    """The arrangements of a scene and of its swap."""
    return [*arrangements_in(scene), *arrangements_in(swap(scene))]


def both_orders(scene: Scene, swap: Swap) -> list[Fact]:
    """The order of a scene, and that order turned round."""
    return [fact for order in orders_in(scene) for fact in (order, (*order[:2], *order[:1:-1]))]


def several(scene: Scene, swap: Swap) -> list[Fact]:
    """The pair of a scene's animal with itself."""
    return [(PAIR, scene.objects[0].animal, scene.objects[0].animal)]


def exchanged_compositions(scene: Scene, swap: Swap) -> list[Fact]:
    """The compositions of the two objects that the swap exchanges, in the scene and in its swap."""
    return [(COMPOSITION, *one.objects[i][:2]) for one in (scene, swap(scene)) for i in exchanged(scene)]


# The facts that tests say training lacks, by kind of split and by what the test is called.
LACKS: Mapping[tuple[str, str], Callable[[Scene, Swap], Any]] = {
    **dict.fromkeys([("binding", "unseen_pairs"), ("binding", "validation")], pairs_in),
    **{("binding", "seen_pairs"): arrangements_in, ("binding", "different_bag"): both_bags},
    **dict.fromkeys([("spatial", "unseen_pairs"), ("spatial", "validation")], pairs_in),
    ("spatial", "unseen_order"): orders_in,
    **dict.fromkeys([("dependence", "unseen_textures"), ("dependence", "validation")], compositions_in),
    **dict.fromkeys([("counting", "unseen_counts"), ("counting", "validation")], several),
    ("multi-object", "unseen"): exchanged_compositions,
}
