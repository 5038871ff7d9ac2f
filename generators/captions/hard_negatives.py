"""Binary tests on a scene of two things: a true caption against a false one.

`swap` asks for binding, and so does `swap size` where things have sizes; `replace ...` and `add ...`
ask for recognition (SugarCrepe's taxonomy), `one animal` for binding by captions that mention one of
the two (OC-CLIP, figure 6). Add one by adding an entry to `TASKS`: a function that gives None for a
scene that it doesn't suit, which then isn't counted.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from envs.common.seeds import generator
from envs.scene import Scene, Thing
from generators.captions.incomplete import absent_things
from generators.captions.relations import PREDICATES
from generators.captions.templates import (
    Caption,
    caption,
    hard_negative,
    mention_order,
    phrasing_of,
    predicate_told,
    put,
)
from generators.vocabulary import Vocabulary


class Choice(NamedTuple):
    """A true caption and a false one."""

    true: Caption
    false: Caption


class Setting(NamedTuple):
    """What a task knows of the split beside the scene; `relations` are those that it tells, `negated`
    how often its training captions deny something."""

    kind: str
    template: str
    seed: int
    vocabulary: Vocabulary
    relations: tuple[str, ...] = ()
    negated: float = 0.0


def swap(scene: Scene, of: Setting) -> Choice:
    """The two textures, or the two places, exchanged: the same words."""
    return Choice(true_caption(scene, of), hard_negative(scene, of.seed, of.template, of.kind))


def one_animal(scene: Scene, of: Setting) -> Choice:
    """ "a red cat" against "a white cat", of a red cat and a white caribou."""
    thing, other = mention_order(scene, of.seed)
    false = thing._replace(texture=other.texture)
    return Choice(told(scene, (thing,), of), told(scene, (false,), of))


def swap_size(scene: Scene, of: Setting) -> Choice | None:
    """ "a small red cat and a big white caribou" against "a big red cat and a small white caribou"; not where
    both are as big."""
    first, second = mention_order(scene, of.seed)
    if first.size == second.size:
        return None
    swapped = first._replace(size=second.size), second._replace(size=first.size)
    return Choice(true_caption(scene, of), told_in_place(scene, swapped, of))


def replace_texture(scene: Scene, of: Setting) -> Choice:
    """One thing in a texture that the scene doesn't show."""
    return Choice(true_caption(scene, of), replaced(scene, of, "texture", of.vocabulary.textures))


def replace_animal(scene: Scene, of: Setting) -> Choice:
    """One thing as an animal that the scene doesn't show."""
    return Choice(true_caption(scene, of), replaced(scene, of, "animal", of.vocabulary.animals))


def replace_size(scene: Scene, of: Setting) -> Choice:
    """One thing in a size that it doesn't have; the other may have it."""
    random = generator(of.seed, "replace", "size", scene.key)
    things = list(mention_order(scene, of.seed))
    chosen = int(random.integers(len(things)))
    others = [size for size in of.vocabulary.sizes if size != things[chosen].size]
    things[chosen] = things[chosen]._replace(size=others[random.integers(len(others))])
    return Choice(true_caption(scene, of), told_in_place(scene, things, of))


def replace_relation(scene: Scene, of: Setting) -> Choice:
    """The predicate of another relation."""
    others = [predicate for name in of.relations if name != scene.relation for predicate in PREDICATES[name]]
    predicate = others[generator(of.seed, "replace", "relation", scene.key).integers(len(others))]
    return Choice(true_caption(scene, of), told(scene, mention_order(scene, of.seed), of, predicate))


def add_animal(scene: Scene, of: Setting) -> Choice:
    """A third animal, in any texture and size, that the scene doesn't show."""
    random = generator(of.seed, "add", scene.key)
    things = mention_order(scene, of.seed)
    absent = absent_from(scene, "animal", of.vocabulary.animals)
    textures, sizes = of.vocabulary.textures, of.vocabulary.sizes
    added = Thing(absent[random.integers(len(absent))], textures[random.integers(len(textures))], "")
    added = added._replace(size=sizes[random.integers(len(sizes))]) if sizes else added
    return Choice(true_caption(scene, of), told(scene, (*things, added), of))


def add_attribute(scene: Scene, of: Setting) -> Choice:
    """ "a cat and a white caribou" against "a grass cat and a white caribou", of a red cat and a white caribou."""
    random = generator(of.seed, "add", "texture", scene.key)
    things, absent = mention_order(scene, of.seed), absent_from(scene, "texture", of.vocabulary.textures)
    bare, added = things[random.integers(len(things))], absent[random.integers(len(absent))]
    either = ([t._replace(texture=texture) if t == bare else t for t in things] for texture in ("", added))
    return Choice(*(told_in_place(scene, its, of) for its in either))


def negation(scene: Scene, of: Setting) -> Choice:
    """ "a red cat and no grass pig" against "a red cat and no white caribou", of a red cat and a white caribou."""
    thing, other = mention_order(scene, of.seed)
    return _denied(scene, of, (thing,), other)


def pure_negation(scene: Scene, of: Setting) -> Choice:
    """ "no grass pig" against "no white caribou", of a red cat and a white caribou."""
    return _denied(scene, of, (), mention_order(scene, of.seed)[1])


def _denied(scene: Scene, of: Setting, told: tuple[Thing, ...], present: Thing) -> Choice:
    others = absent_things(scene, of.vocabulary)
    absent = others[generator(of.seed, "negation", scene.key).integers(len(others))]
    phrasing = phrasing_of(scene, of.seed, of.template)
    return Choice(*(put(phrasing, scene, told, denied=(thing,)) for thing in (absent, present)))


def true_caption(scene: Scene, of: Setting) -> Caption:
    """The caption that the split gives the scene."""
    return caption(scene, of.seed, of.template)


def told(scene: Scene, things: Sequence[Thing], of: Setting, predicate: str = "") -> Caption:
    """Things of the scene or false ones, in the phrasing of its true caption."""
    return put(phrasing_of(scene, of.seed, of.template), scene, things, predicate)


def told_in_place(scene: Scene, things: Sequence[Thing], of: Setting) -> Caption:
    """As `told`, of things in the slots of the scene, with their relation if captions tell one."""
    return told(scene, things, of, predicate_told(scene, things, of.template))


def absent_from(scene: Scene, field: str, names: Sequence[str]) -> list[str]:
    """Those of `names` that no thing of the scene has in `field`."""
    return [name for name in names if name not in {getattr(thing, field) for thing in scene.things}]


def replaced(scene: Scene, of: Setting, field: str, names: Sequence[str]) -> Caption:
    """The caption with something absent for one thing's animal or texture."""
    random = generator(of.seed, "replace", field, scene.key)
    absent = absent_from(scene, field, names)
    things = list(mention_order(scene, of.seed))
    chosen = int(random.integers(len(things)))
    things[chosen] = things[chosen]._replace(**{field: absent[random.integers(len(absent))]})
    return told_in_place(scene, things, of)


TASKS: dict[str, Callable[[Scene, Setting], Choice | None]] = {
    "swap": swap,
    "swap size": swap_size,
    "one animal": one_animal,
    "replace texture": replace_texture,
    "replace animal": replace_animal,
    "replace size": replace_size,
    "replace relation": replace_relation,
    "add animal": add_animal,
    "add attribute": add_attribute,
    "negation": negation,
    "pure negation": pure_negation,
}


# Kinds of splits that a task suits, if not all: things of one texture can't be told apart by it, captions
# with relations don't know "and", and things that are alike can't be replaced one by one.
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
# What a task needs names of, and how many: of textures and animals one that a scene of two doesn't show.
NEEDS = {
    "replace texture": ("textures", 3),
    "replace animal": ("animals", 3),
    "add animal": ("animals", 3),
    "add attribute": ("textures", 3),
    "swap size": ("sizes", 2),
    "replace size": ("sizes", 2),
}


def possible(task: str, of: Setting) -> bool:
    """Whether a split's kind and its world's words allow a task."""
    names, least = NEEDS.get(task, ("animals", 0))
    enough = len(getattr(of.vocabulary, names)) >= least
    # A model that never read "no" has no word for it.
    enough = enough and ("negation" not in task or of.negated > 0)
    enough = enough and (task != "replace relation" or len(of.relations) > 1)
    return enough and of.kind in KINDS_OF.get(task, (of.kind,))


def choices(task: str, scenes: Sequence[Scene], of: Setting) -> list[Choice | None]:
    """The choice of a task for every scene; None for one that it doesn't suit."""
    return [TASKS[task](scene, of) for scene in scenes]
