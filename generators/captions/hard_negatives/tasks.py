"""Binary tests on a scene of two objects: a true caption against a false one.

`swap` tests binding, and so does `swap size` in worlds with sizes. `replace ...` and `add ...` test recognition
(SugarCrepe's taxonomy). The false captions of `add ...` are half-truths: the true one with a false detail (Kargi et al.
2026). `one animal` tests binding with captions that mention one of the two (OC-CLIP, figure 6). To add a task, add an
entry to `TASKS`, with a function that returns None for a scene to which it doesn't apply; such scenes are not counted.
Then add its name to the kinds of splits that have it (`SplitRecipe.tasks`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.contents import hard_negative
from menagerie.generators.captions.incomplete import absent_objects
from menagerie.generators.captions.multi_object import Telling, caption_of, in_order
from menagerie.generators.captions.relations import PREDICATES
from menagerie.generators.captions.templates import Caption, caption, content_of, mention_order, write_caption

Choice = tuple[Caption, ...]
"""A true caption and a false one; of multi-object scenes one or more of each, the true ones first."""


def against_true(scene: Scene, telling: Telling, objects: Sequence[Object]) -> Choice:
    """The true caption against one of other objects, in the slots and the phrasing of the scene."""
    return caption(scene, telling.seed, telling.template), caption_of(scene, objects, telling)


def swap(scene: Scene, telling: Telling) -> Choice:
    """The true caption against the one with the two objects' textures, or their places, exchanged."""
    true = caption(scene, telling.seed, telling.template)
    exchanges = "slot" if telling.template.relation else "texture"
    return true, hard_negative(scene, telling.seed, telling.template, exchanges)


def one_animal(scene: Scene, telling: Telling) -> Choice:
    """For a red cat and a white caribou: "a red cat" against "a white cat"."""
    obj, other = mention_order(scene, telling.seed)
    return tuple(caption_of(scene, (one,), telling) for one in (obj, obj._replace(texture=other.texture)))


def swap_size(scene: Scene, telling: Telling) -> Choice | None:
    """ "a small red cat and a big white caribou" against "a big red cat and a small white caribou"; None if both have
    the same size."""
    first, second = in_order(scene, telling)
    if first.size == second.size:
        return None
    return against_true(scene, telling, (first._replace(size=second.size), second._replace(size=first.size)))


def replaced(scene: Scene, telling: Telling, field: str) -> Choice:
    """The true caption against one in which an object has a texture or an animal that the scene doesn't show, or
    another size, possibly that of the other object."""
    random = generator(telling.seed, "replace", field, scene.key)
    objects = list(in_order(scene, telling))
    chosen = int(random.integers(len(objects)))
    shown = objects if field != "size" else [objects[chosen]]
    others = absent_from(shown, field, telling.words.names(field))
    objects[chosen] = objects[chosen]._replace(**{field: others[random.integers(len(others))]})
    return against_true(scene, telling, objects)


def replace_relation(scene: Scene, telling: Telling) -> Choice:
    """The true caption against one with the predicate of another relation."""
    names = [name for name in telling.recipe["relations"] if name != scene.relation]
    others = [predicate for name in names for predicate in PREDICATES[name]]
    predicate = others[generator(telling.seed, "replace", "relation", scene.key).integers(len(others))]
    objects = in_order(scene, telling)
    return caption_of(scene, objects, telling), caption_of(scene, objects, telling, (predicate,))


def add_animal(scene: Scene, telling: Telling) -> Choice:
    """The true caption against one with a third animal that the scene doesn't show, in any texture and size."""
    random, words = generator(telling.seed, "add", scene.key), telling.words
    absent = absent_from(scene.objects, "animal", words.animals)
    added = Object(absent[random.integers(len(absent))], words.textures[random.integers(len(words.textures))], "")
    added = added._replace(size=words.sizes[random.integers(len(words.sizes))]) if words.sizes else added
    return against_true(scene, telling, (*in_order(scene, telling), added))


def add_attribute(scene: Scene, telling: Telling) -> Choice:
    """For a red cat and a white caribou: "a cat and a white caribou" against "a grass cat and a white caribou"."""
    random = generator(telling.seed, "add", "texture", scene.key)
    objects, absent = in_order(scene, telling), absent_from(scene.objects, "texture", telling.words.textures)
    bare, added = objects[random.integers(len(objects))], absent[random.integers(len(absent))]
    either = ([t._replace(texture=texture) if t == bare else t for t in objects] for texture in ("", added))
    return tuple(caption_of(scene, changed, telling) for changed in either)


def negation(scene: Scene, telling: Telling, pure: bool) -> Choice:
    """For a red cat and a white caribou: "a red cat and no grass pig" against "a red cat and no white caribou"; if
    `pure`: "no grass pig" against "no white caribou"."""
    obj, present = mention_order(scene, telling.seed)
    others = absent_objects(scene, telling.words)
    absent = others[generator(telling.seed, "negation", scene.key).integers(len(others))]
    content = content_of(scene, telling.seed, telling.template, () if pure else (obj,))
    return tuple(write_caption(content._replace(denied=(denied,)), telling.template) for denied in (absent, present))


def absent_from(objects: Sequence[Object], field: str, names: Sequence[str]) -> list[str]:
    """Return those of `names` that are the `field` of no object."""
    return [name for name in names if name not in {getattr(obj, field) for obj in objects}]


class Task(NamedTuple):
    """A task, and the splits of its kinds to which it applies."""

    ask: Callable[[Scene, Telling], Choice | None]
    least: tuple[str, int] = ("animals", 0)
    """The names of a world that it needs, and how many: often one more than a scene of two shows."""
    suits: Callable[[Telling], bool] = lambda telling: True
    """Whether it applies to the captions of a split."""


def negates(telling: Telling) -> bool:
    """Whether captions of train negate: a model that never saw "no" in training can't be tested on it."""
    return telling.recipe.get("negated", 0.0) > 0


TASKS: dict[str, Task] = {
    "swap": Task(swap),
    "swap size": Task(swap_size, ("sizes", 2)),
    "one animal": Task(one_animal),
    "replace texture": Task(partial(replaced, field="texture"), ("textures", 3)),
    "replace animal": Task(partial(replaced, field="animal"), ("animals", 3)),
    "replace size": Task(partial(replaced, field="size"), ("sizes", 2)),
    "replace relation": Task(replace_relation, suits=lambda its: len(its.recipe.get("relations", ())) > 1),
    "add animal": Task(add_animal, ("animals", 3)),
    "add attribute": Task(add_attribute, ("textures", 3)),
    "negation": Task(partial(negation, pure=False), suits=negates),
    "pure negation": Task(partial(negation, pure=True), suits=negates),
}


def tasks_named(*names: str) -> dict[str, Task]:
    """The tasks of these names, in the table's order."""
    return {name: task for name, task in TASKS.items() if name in names}


def possible(task: str, telling: Telling) -> bool:
    """Return whether a task applies to a split of one of its kinds: to its names and its captions."""
    return applies(TASKS[task], telling)


def applies(task: Task, telling: Telling) -> bool:
    """The same for a task that needn't be in the table."""
    names, least = task.least
    return len(getattr(telling.words, names)) >= least and task.suits(telling)


def choices(task: str, scenes: Sequence[Scene], telling: Telling) -> list[Choice | None]:
    """The choice of a task for every scene; None for a scene to which it doesn't apply."""
    return [TASKS[task].ask(scene, telling) for scene in scenes]
