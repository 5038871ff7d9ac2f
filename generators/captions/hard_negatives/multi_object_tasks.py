"""Tests on scenes of several objects: one or more true captions against one or more false ones.

The task `swap`, which the split file holds, exchanges the textures of two objects. `assignment` permutes the textures
of up to four objects in every other way: a scorer that knows the objects, but not which texture is whose, has exactly
the chance level. `illusion` tests a phrase whose words are true of two different objects, `order` a relation,
`paraphrase` two captions that say the same. Train shows what a false caption names as often as what its caption names;
otherwise the false caption would give itself away. To add a task, add an entry to `MULTI_OBJECT_TASKS`: a function that
returns None for a scene to which it doesn't apply."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from math import factorial

from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import holds
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.hard_negatives.tasks import Choice, absent_from
from menagerie.generators.captions.multi_object import (
    LEAST,
    Telling,
    backwards,
    caption_of,
    in_order,
    swapped,
    tested_objects,
)
from menagerie.generators.captions.relations import CONVERSES, PREDICATES, chain

ASSIGNMENT = "assignment of "  # starts the names of tasks, which end with the number of objects
MOST_ASSIGNED = 4  # objects whose textures are assigned in every way
PARAPHRASE = "paraphrase"


def true_texts(task: str) -> int:
    """The number of true texts of a task, which come first."""
    return 2 if task == PARAPHRASE else 1


def chance_of(task: str) -> float:
    """The chance level of a task of multi-object scenes."""
    if task.startswith(ASSIGNMENT):
        return 1 / factorial(int(task.removeprefix(ASSIGNMENT)))
    return 1 / 3 if task == PARAPHRASE else 1 / 2


def assigned(objects: int, most: int) -> int:
    """The number of objects whose textures `assignment` permutes."""
    return min(objects, MOST_ASSIGNED, max(most, LEAST))


def swapped_of(scene: Scene, objects: Sequence[Object], telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention these objects. Return None if the captions of `swap` do so anyway."""
    if len(objects) == len(tested_objects(scene, telling)):
        return None
    return tuple(caption_of(scene, told, telling) for told in (objects, swapped(scene, objects)))


def swap_all(scene: Scene, telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention all objects."""
    return swapped_of(scene, in_order(scene, telling), telling)


def two_mentioned(scene: Scene, telling: Telling) -> Choice | None:
    """Ask `swap` with captions that mention only the two exchanged objects."""
    pair = {scene.objects[i].slot for i in exchanged(scene)}
    return swapped_of(scene, tuple(obj for obj in in_order(scene, telling) if obj.slot in pair), telling)


def assignment(scene: Scene, telling: Telling, number: int) -> Choice | None:
    """Draw `number` objects and ask with a caption for each permutation of their textures, the true one first. None if
    `number` isn't the scene's (`assigned`), if train doesn't show all compositions, or if objects share a texture."""
    alone = len({obj.texture for obj in scene.objects}) == len(scene.objects)
    if telling.recipe["coverage"] < 1 or not alone or number != assigned(len(scene.objects), telling.most):
        return None
    drawn = generator(telling.seed, "assigned", scene.key).permutation(len(scene.objects))[:number].tolist()
    slots = [scene.objects[i].slot for i in sorted(drawn)]
    objects = [obj for obj in in_order(scene, telling) if obj.slot in slots]
    dealt = permutations(obj.texture for obj in objects)
    ways = [tuple(t._replace(texture=new) for t, new in zip(objects, textures, strict=True)) for textures in dealt]
    return tuple(caption_of(scene, told, telling) for told in ways)


def illusion(scene: Scene, telling: Telling) -> Choice:
    """For a scene whose exchanged objects are a red cat and a white dog: "a red cat" against "a white cat". The scene
    shows something white and a cat, but no white cat."""
    pair = [scene.objects[i] for i in exchanged(scene)]
    first = int(generator(telling.seed, "illusion", scene.key).integers(2))
    one, other = pair[first], pair[1 - first]
    return tuple(caption_of(scene, (obj,), telling) for obj in (one, one._replace(texture=other.texture)))


def order(scene: Scene, telling: Telling) -> Choice | None:
    """Ask for the caption against one that states a false relation: two objects of its chain are exchanged, or a
    predicate is replaced by its converse. Return None if captions state no relation."""
    objects = tested_objects(scene, telling)
    false = list(reordered(objects, chain([obj.slot for obj in objects], telling.template.relations)))
    if not false:
        return None
    drawn = false[generator(telling.seed, "order of things", scene.key).integers(len(false))]
    return caption_of(scene, objects, telling), caption_of(scene, drawn[0], telling, drawn[1])


Stated = tuple[tuple[Object, ...], tuple[str, ...]]  # objects, and the predicates of their chain


def reordered(objects: Sequence[Object], predicates: Sequence[str]) -> Iterator[Stated]:
    """Yield the false chains with two objects exchanged, or with one predicate replaced by its converse."""
    for one, other in combinations(range(len(predicates) + 1) if predicates else (), 2):
        changed = list(objects)
        changed[one], changed[other] = changed[other], changed[one]
        if any(says_false(*link) for link in zip(changed, predicates, changed[1:], strict=False)):
            yield tuple(changed), tuple(predicates)
    if len(predicates) > 1:  # with a single predicate, turning it is the same as exchanging its objects
        for i, name in enumerate(predicates):
            yield tuple(objects), (*predicates[:i], CONVERSES[name], *predicates[i + 1 :])


def says_false(subject: Object, predicate: str, other: Object) -> bool:
    """Return whether a predicate is known to be false of two objects in their slots (`layouts.holds`)."""
    name = next(name for name, both in PREDICATES.items() if predicate in both)
    first, second = (subject, other) if predicate == PREDICATES[name][0] else (other, subject)
    return holds(name, first.slot, second.slot) is False


def paraphrase(scene: Scene, telling: Telling) -> Choice | None:
    """Ask for two true captions that say the same in two orders, against the swap in one of these orders. Return None
    if the template prescribes the order."""
    if telling.template.mention_order != "random":
        return None
    objects = tested_objects(scene, telling)
    false, turned = swapped(scene, objects), int(generator(telling.seed, "paraphrase", scene.key).integers(2))
    wrong = backwards(scene, false, telling) if turned else caption_of(scene, false, telling)
    return caption_of(scene, objects, telling), backwards(scene, objects, telling), wrong


def replaced(scene: Scene, telling: Telling, field: str) -> Choice | None:
    """Ask for the caption against one in which an exchanged object has another animal or texture, which the scene
    doesn't show and which below full coverage is of the same class. Return None if there is none."""
    classes = getattr(telling.coverage, f"{field}s")
    random = generator(telling.seed, "replaced", field, scene.key)
    obj = scene.objects[exchanged(scene)[random.integers(2)]]
    kind = classes[getattr(obj, field)] if telling.recipe["coverage"] < 1 else None
    names = [name for name in absent_from(scene.objects, field, list(classes)) if kind in (None, classes[name])]
    if not names:
        return None
    new = obj._replace(**{field: names[random.integers(len(names))]})
    objects = tested_objects(scene, telling)
    false = tuple(new if other.slot == obj.slot else other for other in objects)
    return caption_of(scene, objects, telling), caption_of(scene, false, telling)


MULTI_OBJECT_TASKS: dict[str, Callable[[Scene, Telling], Choice | None]] = {
    "swap all": swap_all,
    "two mentioned": two_mentioned,
    **{f"{ASSIGNMENT}{k}": partial(assignment, number=k) for k in range(LEAST, MOST_ASSIGNED + 1)},
    "illusion": illusion,
    "order": order,
    PARAPHRASE: paraphrase,
    "replace texture": partial(replaced, field="texture"),
    "replace animal": partial(replaced, field="animal"),
}
