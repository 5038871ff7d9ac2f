"""Facts of scenes, and what a test says of them: that training lacks them, or has them.

A claim is a function of a tested scene and of all facts of training (`facts_of`). A kind of split makes its claims of
these functions (`SplitRecipe.lacks`, `SplitRecipe.has`).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations
from typing import Any

from menagerie.envs.relations import relation_from
from menagerie.envs.scene import Scene

Fact = tuple[Any, ...]
Facts = Callable[[Scene], Iterable[Fact]]
Claim = Callable[[Scene, frozenset[Fact]], bool]
COMPOSITION, PAIR, ARRANGEMENT, ORDER, NUMBER = "composition", "pair", "arrangement", "order", "number"
STATED = (COMPOSITION, PAIR, ARRANGEMENT, ORDER)  # kinds of facts that captions state
SEEN = tuple(f"{side}_{what}_seen" for what in (*STATED, "text") for side in ("true", "false"))
"""Columns of predictions: how often training had what only the true and only the false caption states."""


def facts_of(scene: Scene) -> Iterator[Fact]:
    """Yield all facts of a scene."""
    for of_a_kind in (composition_facts, pair_facts, arrangement_facts, order_facts, number_facts):
        yield from of_a_kind(scene)


def composition_facts(scene: Scene) -> Iterator[Fact]:
    """Yield each animal with its texture."""
    return ((COMPOSITION, *obj[:2]) for obj in scene.objects)


def pair_facts(scene: Scene) -> Iterator[Fact]:
    """Yield every two animals, which may be alike."""
    return ((PAIR, *sorted(both)) for both in combinations([obj.animal for obj in scene.objects], 2))


def arrangement_facts(scene: Scene) -> Iterator[Fact]:
    """Yield every two compositions."""
    return ((ARRANGEMENT, *sorted(both)) for both in combinations([obj[:2] for obj in scene.objects], 2))


def order_facts(scene: Scene) -> Iterator[Fact]:
    """Yield the relation of every two objects, and their animals, the left, upper or foremost one first."""
    for one, other in permutations(scene.objects, 2):
        if relation := relation_from(one.slot, other.slot):
            yield (ORDER, relation, one.animal, other.animal)


def reversed_order_facts(scene: Scene) -> Iterator[Fact]:
    """Yield the orders of a scene, turned round."""
    return ((*order[:2], *order[:1:-1]) for order in order_facts(scene))


def number_facts(scene: Scene) -> Iterator[Fact]:
    """Yield the animal and its number if the scene shows one animal, once or several times."""
    if len(animals := {obj.animal for obj in scene.objects}) == 1:
        yield (NUMBER, *animals, len(scene.objects))


def several_of_one(scene: Scene) -> Iterator[Fact]:
    """Yield the pair of the first animal with itself, however many the scene shows."""
    yield (PAIR, scene.objects[0].animal, scene.objects[0].animal)


def claim_has_none(*facts: Facts) -> Claim:
    """The claim that training has none of a scene's facts."""
    return lambda scene, known: all(known.isdisjoint(of_a_kind(scene)) for of_a_kind in facts)


def claim_has_all(*facts: Facts) -> Claim:
    """The claim that training has all of a scene's facts."""
    return lambda scene, known: all(known.issuperset(of_a_kind(scene)) for of_a_kind in facts)
