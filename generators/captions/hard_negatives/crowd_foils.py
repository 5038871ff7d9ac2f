"""Tests on scenes of several things: one or more true captions against one or more false ones.

The task `swap`, which the split file holds, exchanges the textures of two things. `assignment` permutes the textures of
up to four things in every other way: a scorer that knows the things, but not which texture is whose, has exactly the
chance level. `illusion` tests a phrase whose words are true of two different things, `order` a relation, `paraphrase`
two captions that say the same. Train shows what a foil names as often as what its caption names; otherwise the foil
would give itself away. To add a task, add an entry to `CROWD_TASKS`: a function that returns None for a scene to which
it doesn't apply.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from math import factorial

from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import holds
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.crowds import (
    LEAST,
    Telling,
    backwards,
    caption_of,
    in_order,
    swapped,
    tested_things,
)
from menagerie.generators.captions.hard_negatives.foils import Choice, absent_from
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.relations import CONVERSES, PREDICATES, chain

ASSIGNMENT = "assignment of "  # starts the names of tasks, which end with the number of things
MOST_ASSIGNED = 4  # things whose textures are assigned in every way
PARAPHRASE = "paraphrase"


def true_texts(task: str) -> int:
    """The number of true texts of a task, which come first."""
    return 2 if task == PARAPHRASE else 1


def chance_of(task: str) -> float:
    """The chance level of a task of crowds."""
    if task.startswith(ASSIGNMENT):
        return 1 / factorial(int(task.removeprefix(ASSIGNMENT)))
    return 1 / 3 if task == PARAPHRASE else 1 / 2


def assigned(things: int, most: int) -> int:
    """The number of things whose textures `assignment` permutes."""
    return min(things, MOST_ASSIGNED, max(most, LEAST))


def swapped_of(scene: Scene, things: Sequence[Thing], telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention these things. Return None if the captions of `swap` do so anyway."""
    if len(things) == len(tested_things(scene, telling)):
        return None
    return tuple(caption_of(scene, told, telling) for told in (things, swapped(scene, things)))


def swap_all(scene: Scene, telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention all things."""
    return swapped_of(scene, in_order(scene, telling), telling)


def two_mentioned(scene: Scene, telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention only the two exchanged things."""
    pair = {scene.things[i].slot for i in exchanged(scene)}
    return swapped_of(scene, tuple(thing for thing in in_order(scene, telling) if thing.slot in pair), telling)


def assignment(scene: Scene, telling: Telling, number: int) -> Choice | None:
    """Draw `number` things and ask with a caption for each permutation of their textures, the true one first. None if
    `number` isn't the scene's (`assigned`), if train doesn't show all compositions, or if things share a texture."""
    alone = len({thing.texture for thing in scene.things}) == len(scene.things)
    if telling.recipe["coverage"] < 1 or not alone or number != assigned(len(scene.things), telling.most):
        return None
    drawn = generator(telling.seed, "assigned", scene.key).permutation(len(scene.things))[:number].tolist()
    slots = [scene.things[i].slot for i in sorted(drawn)]
    things = [thing for thing in in_order(scene, telling) if thing.slot in slots]
    dealt = permutations(thing.texture for thing in things)
    ways = [tuple(t._replace(texture=new) for t, new in zip(things, textures, strict=True)) for textures in dealt]
    return tuple(caption_of(scene, told, telling) for told in ways)


def illusion(scene: Scene, telling: Telling) -> Choice:
    """For a scene whose exchanged things are a red cat and a white dog: "a red cat" against "a white cat". The scene
    shows something white and a cat, but no white cat."""
    pair = [scene.things[i] for i in exchanged(scene)]
    first = int(generator(telling.seed, "illusion", scene.key).integers(2))
    one, other = pair[first], pair[1 - first]
    return tuple(caption_of(scene, (thing,), telling) for thing in (one, one._replace(texture=other.texture)))


def order(scene: Scene, telling: Telling) -> Choice | None:
    """Ask for the caption against one that states a false relation: two things of its chain are exchanged, or a
    predicate is replaced by its converse. Return None if captions state no relation."""
    things = tested_things(scene, telling)
    false = list(reordered(things, chain([thing.slot for thing in things], telling.template.relations)))
    if not false:
        return None
    drawn = false[generator(telling.seed, "order of things", scene.key).integers(len(false))]
    return caption_of(scene, things, telling), caption_of(scene, drawn[0], telling, drawn[1])


Stated = tuple[tuple[Thing, ...], tuple[str, ...]]  # things, and the predicates of their chain


def reordered(things: Sequence[Thing], predicates: Sequence[str]) -> Iterator[Stated]:
    """Yield the false chains with two things exchanged, or with one predicate replaced by its converse."""
    for one, other in combinations(range(len(predicates) + 1) if predicates else (), 2):
        changed = list(things)
        changed[one], changed[other] = changed[other], changed[one]
        if any(says_false(*link) for link in zip(changed, predicates, changed[1:], strict=False)):
            yield tuple(changed), tuple(predicates)
    if len(predicates) > 1:  # with a single predicate, turning it is the same as exchanging its things
        for i, name in enumerate(predicates):
            yield tuple(things), (*predicates[:i], CONVERSES[name], *predicates[i + 1 :])


def says_false(subject: Thing, predicate: str, other: Thing) -> bool:
    """Return whether a predicate is known to be false of two things in their slots (`layouts.holds`)."""
    name = next(name for name, both in PREDICATES.items() if predicate in both)
    first, second = (subject, other) if predicate == PREDICATES[name][0] else (other, subject)
    return holds(name, first.slot, second.slot) is False


def paraphrase(scene: Scene, telling: Telling) -> Choice | None:
    """Ask for two true captions that say the same in two orders, against the swap in one of these orders. Return None
    if the template prescribes the order."""
    if telling.template.mention_order != "random":
        return None
    things = tested_things(scene, telling)
    false, turned = swapped(scene, things), int(generator(telling.seed, "paraphrase", scene.key).integers(2))
    wrong = backwards(scene, false, telling) if turned else caption_of(scene, false, telling)
    return caption_of(scene, things, telling), backwards(scene, things, telling), wrong


def replaced(scene: Scene, telling: Telling, field: str) -> Choice | None:
    """Ask for the caption against one in which an exchanged thing has another animal or texture, which the scene
    doesn't show and which below full coverage is of the same class. Return None if there is none."""
    classes = getattr(telling.coverage, f"{field}s")
    random = generator(telling.seed, "replaced", field, scene.key)
    thing = scene.things[exchanged(scene)[random.integers(2)]]
    kind = classes[getattr(thing, field)] if telling.recipe["coverage"] < 1 else None
    names = [name for name in absent_from(scene.things, field, list(classes)) if kind in (None, classes[name])]
    if not names:
        return None
    new = thing._replace(**{field: names[random.integers(len(names))]})
    things = tested_things(scene, telling)
    false = tuple(new if other.slot == thing.slot else other for other in things)
    return caption_of(scene, things, telling), caption_of(scene, false, telling)


CROWD_TASKS: dict[str, Callable[[Scene, Telling], Choice | None]] = {
    "swap all": swap_all,
    "two mentioned": two_mentioned,
    **{f"{ASSIGNMENT}{k}": partial(assignment, number=k) for k in range(LEAST, MOST_ASSIGNED + 1)},
    "illusion": illusion,
    "order": order,
    PARAPHRASE: paraphrase,
    "replace texture": partial(replaced, field="texture"),
    "replace animal": partial(replaced, field="animal"),
}
