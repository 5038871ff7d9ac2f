"""Binary tests on a scene of two things: a true caption against a false one.

`swap` tests binding, and so does `swap size` in worlds with sizes. `replace ...` and `add ...` test recognition
(SugarCrepe's taxonomy). The false captions of `add ...` are half-truths: the true one with a false detail (Kargi et al.
2026). `one animal` tests binding with captions that mention one of the two (OC-CLIP, figure 6). To add a task, add an
entry to `TASKS`: a function that returns None for a scene to which it doesn't apply; such scenes are not counted.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.hard_negatives.swaps import hard_negative
from menagerie.generators.captions.incomplete import absent_things
from menagerie.generators.captions.relations import PREDICATES
from menagerie.generators.captions.templates import (
    AnyTemplate,
    Caption,
    as_template,
    build_caption,
    caption,
    mention_order,
    phrasing_of,
    predicate_for,
)
from menagerie.generators.vocabulary import Vocabulary


class Choice(NamedTuple):
    """A true caption and a false one."""

    true: Caption
    false: Caption


class TaskContext(NamedTuple):
    """The properties of a split that a task needs."""

    kind: str
    template: AnyTemplate
    seed: int
    vocabulary: Vocabulary
    relations: tuple[str, ...] = ()
    """Relations that the split's captions state."""
    negated: float = 0.0
    """Probability that a training caption negates an absent object."""


def swap(scene: Scene, context: TaskContext) -> Choice:
    """The true caption against the one with the two things' textures, or their places, exchanged."""
    return Choice(true_caption(scene, context), hard_negative(scene, context.seed, context.template, context.kind))


def one_animal(scene: Scene, context: TaskContext) -> Choice:
    """For a red cat and a white caribou: "a red cat" against "a white cat"."""
    thing, other = mention_order(scene, context.seed)
    false = thing._replace(texture=other.texture)
    return Choice(caption_of(scene, (thing,), context), caption_of(scene, (false,), context))


def swap_size(scene: Scene, context: TaskContext) -> Choice | None:
    """ "a small red cat and a big white caribou" against "a big red cat and a small white caribou"; None if both have
    the same size."""
    first, second = mentioned(scene, context)
    if first.size == second.size:
        return None
    swapped = first._replace(size=second.size), second._replace(size=first.size)
    return Choice(true_caption(scene, context), caption_in_place(scene, swapped, context))


def replace_size(scene: Scene, context: TaskContext) -> Choice:
    """The true caption against one in which a thing has another size, possibly that of the other thing."""
    random = generator(context.seed, "replace", "size", scene.key)
    things = list(mentioned(scene, context))
    chosen = int(random.integers(len(things)))
    others = [size for size in context.vocabulary.sizes if size != things[chosen].size]
    things[chosen] = things[chosen]._replace(size=others[random.integers(len(others))])
    return Choice(true_caption(scene, context), caption_in_place(scene, things, context))


def replace_relation(scene: Scene, context: TaskContext) -> Choice:
    """The true caption against one with the predicate of another relation."""
    others = [predicate for name in context.relations if name != scene.relation for predicate in PREDICATES[name]]
    predicate = others[generator(context.seed, "replace", "relation", scene.key).integers(len(others))]
    false = caption_of(scene, mentioned(scene, context), context, predicate)
    return Choice(true_caption(scene, context), false)


def add_animal(scene: Scene, context: TaskContext) -> Choice:
    """The true caption against one with a third animal that the scene doesn't show, in any texture and size."""
    random = generator(context.seed, "add", scene.key)
    things = mentioned(scene, context)
    absent = absent_from(scene, "animal", context.vocabulary.animals)
    textures, sizes = context.vocabulary.textures, context.vocabulary.sizes
    added = Thing(absent[random.integers(len(absent))], textures[random.integers(len(textures))], "")
    added = added._replace(size=sizes[random.integers(len(sizes))]) if sizes else added
    return Choice(true_caption(scene, context), caption_of(scene, (*things, added), context))


def add_attribute(scene: Scene, context: TaskContext) -> Choice:
    """For a red cat and a white caribou: "a cat and a white caribou" against "a grass cat and a white caribou"."""
    random = generator(context.seed, "add", "texture", scene.key)
    things, absent = mentioned(scene, context), absent_from(scene, "texture", context.vocabulary.textures)
    bare, added = things[random.integers(len(things))], absent[random.integers(len(absent))]
    either = ([t._replace(texture=texture) if t == bare else t for t in things] for texture in ("", added))
    return Choice(*(caption_in_place(scene, changed, context) for changed in either))


def negation(scene: Scene, context: TaskContext) -> Choice:
    """For a red cat and a white caribou: "a red cat and no grass pig" against "a red cat and no white caribou"."""
    thing, other = mention_order(scene, context.seed)
    return _denied(scene, context, (thing,), other)


def pure_negation(scene: Scene, context: TaskContext) -> Choice:
    """For a red cat and a white caribou: "no grass pig" against "no white caribou"."""
    return _denied(scene, context, (), mention_order(scene, context.seed)[1])


def _denied(scene: Scene, context: TaskContext, mentioned: tuple[Thing, ...], present: Thing) -> Choice:
    others = absent_things(scene, context.vocabulary)
    absent = others[generator(context.seed, "negation", scene.key).integers(len(others))]
    phrasing = phrasing_of(scene, context.seed, context.template)
    return Choice(*(build_caption(phrasing, scene, mentioned, denied=(thing,)) for thing in (absent, present)))


def mentioned(scene: Scene, context: TaskContext) -> tuple[Thing, ...]:
    """The things of a scene in the order in which the true caption mentions them."""
    return mention_order(scene, context.seed, as_template(context.template).mention_order)


def true_caption(scene: Scene, context: TaskContext) -> Caption:
    """The scene's caption in the split."""
    return caption(scene, context.seed, context.template)


def caption_of(scene: Scene, things: Sequence[Thing], context: TaskContext, predicate: str = "") -> Caption:
    """A caption of `things`, which may differ from the scene's, in the phrasing of the scene's true caption."""
    return build_caption(phrasing_of(scene, context.seed, context.template), scene, things, predicate)


def caption_in_place(scene: Scene, things: Sequence[Thing], context: TaskContext) -> Caption:
    """A caption of things that stand in the scene's slots, with their relation if the template states it."""
    return caption_of(scene, things, context, predicate_for(scene, things, context.template))


def absent_from(scene: Scene, field: str, names: Sequence[str]) -> list[str]:
    """Return those of `names` that are the `field` of no thing of the scene."""
    return [name for name in names if name not in {getattr(thing, field) for thing in scene.things}]


def replace_by_absent(scene: Scene, context: TaskContext, field: str) -> Choice:
    """The true caption against one in which a thing has a texture or an animal that the scene doesn't show."""
    random = generator(context.seed, "replace", field, scene.key)
    absent = absent_from(scene, field, getattr(context.vocabulary, f"{field}s"))
    things = list(mentioned(scene, context))
    chosen = int(random.integers(len(things)))
    things[chosen] = things[chosen]._replace(**{field: absent[random.integers(len(absent))]})
    return Choice(true_caption(scene, context), caption_in_place(scene, things, context))


TASKS: dict[str, Callable[[Scene, TaskContext], Choice | None]] = {
    "swap": swap,
    "swap size": swap_size,
    "one animal": one_animal,
    "replace texture": partial(replace_by_absent, field="texture"),
    "replace animal": partial(replace_by_absent, field="animal"),
    "replace size": replace_size,
    "replace relation": replace_relation,
    "add animal": add_animal,
    "add attribute": add_attribute,
    "negation": negation,
    "pure negation": pure_negation,
}


# Kinds of splits to which a task applies, if not to all: `one animal` needs two textures, `add animal` captions without
# a relation, and the others things that differ.
KINDS_OF = {
    "one animal": ("binding", "dependence"),
    "add animal": ("binding", "dependence"),
    "replace texture": ("binding", "dependence", "spatial"),
    "replace animal": ("binding", "dependence", "spatial"),
    "swap size": ("binding", "dependence", "spatial"),
    "replace size": ("binding", "dependence", "spatial"),
    "add attribute": ("binding", "dependence", "spatial"),
    "replace relation": ("spatial",),
    "negation": ("binding",),
    "pure negation": ("binding",),
}
# The names that a task needs, and how many: one more texture or animal than a scene of two shows.
NEEDS = {
    "replace texture": ("textures", 3),
    "replace animal": ("animals", 3),
    "add animal": ("animals", 3),
    "add attribute": ("textures", 3),
    "swap size": ("sizes", 2),
    "replace size": ("sizes", 2),
}


def possible(task: str, context: TaskContext) -> bool:
    """Return whether a task applies to a split: to its kind, vocabulary, relations and negations."""
    names, least = NEEDS.get(task, ("animals", 0))
    enough = len(getattr(context.vocabulary, names)) >= least
    # A model that never saw "no" in training can't be tested on it.
    enough = enough and ("negation" not in task or context.negated > 0)
    enough = enough and (task != "replace relation" or len(context.relations) > 1)
    return enough and context.kind in KINDS_OF.get(task, (context.kind,))


def choices(task: str, scenes: Sequence[Scene], context: TaskContext) -> list[Choice | None]:
    """The choice of a task for every scene; None for a scene to which it doesn't apply."""
    return [TASKS[task](scene, context) for scene in scenes]
