"""Binary tests on a scene of two things: a true caption against a false one.

`swap` asks for binding, `replace ...` and `add animal` for recognition (SugarCrepe's taxonomy),
`one animal` for binding by captions that mention one of the two (OC-CLIP, figure 6). Add one by
adding an entry to `TASKS`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from envs.scene import Scene, Thing
from generators.captions import Caption, caption, hard_negative, mention_order, phrasing_of, predicate_told, put
from generators.partial_captions import absent_things
from generators.relations import PREDICATES
from generators.seeds import generator
from generators.tables import Vocabulary


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


def replace_texture(scene: Scene, of: Setting) -> Choice:
    """One thing in a texture that the scene doesn't show."""
    return Choice(true_caption(scene, of), replaced(scene, of, "texture", of.vocabulary.textures))


def replace_animal(scene: Scene, of: Setting) -> Choice:
    """One thing as an animal that the scene doesn't show."""
    return Choice(true_caption(scene, of), replaced(scene, of, "animal", of.vocabulary.animals))


def replace_relation(scene: Scene, of: Setting) -> Choice:
    """The predicate of another relation."""
    others = [predicate for name in of.relations if name != scene.relation for predicate in PREDICATES[name]]
    predicate = others[generator(of.seed, "replace", "relation", scene.key).integers(len(others))]
    return Choice(true_caption(scene, of), told(scene, mention_order(scene, of.seed), of, predicate))


def add_animal(scene: Scene, of: Setting) -> Choice:
    """A third animal, in any texture, that the scene doesn't show."""
    random = generator(of.seed, "add", scene.key)
    things = mention_order(scene, of.seed)
    absent = absent_from(scene, "animal", of.vocabulary.animals)
    textures = of.vocabulary.textures
    added = Thing(absent[random.integers(len(absent))], textures[random.integers(len(textures))], "")
    return Choice(true_caption(scene, of), told(scene, (*things, added), of))


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
    return told(scene, things, of, predicate_told(scene, things, of.template))


TASKS: dict[str, Callable[[Scene, Setting], Choice]] = {
    "swap": swap,
    "one animal": one_animal,
    "replace texture": replace_texture,
    "replace animal": replace_animal,
    "replace relation": replace_relation,
    "add animal": add_animal,
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
    "replace relation": ("spatial",),
    "negation": ("binding",),
    "pure negation": ("binding",),
}
NEEDS_THIRD = {"replace texture": "textures", "replace animal": "animals", "add animal": "animals"}


def possible(task: str, of: Setting) -> bool:
    """Whether a split's kind and its world's words allow a task."""
    enough = task not in NEEDS_THIRD or len(getattr(of.vocabulary, NEEDS_THIRD[task])) > 2
    # A model that never read "no" has no word for it.
    enough = enough and ("negation" not in task or of.negated > 0)
    enough = enough and (task != "replace relation" or len(of.relations) > 1)
    return enough and of.kind in KINDS_OF.get(task, (of.kind,))


def choices(task: str, scenes: Sequence[Scene], of: Setting) -> list[Choice]:
    """The choice of a task for every scene."""
    return [TASKS[task](scene, of) for scene in scenes]
