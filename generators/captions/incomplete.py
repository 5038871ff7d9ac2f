"""Training captions that describe their scene incompletely.

They have three properties of photographs' captions with which CLIP fails to learn binding (Gurung, Hoffmann and Brox
2025, "Common data properties limit object-attribute binding in CLIP"): objects are not mentioned, attributes are left
out, and salient objects are mentioned more often. All draws depend on (seed, scene) only.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS, size_factor
from menagerie.envs.world import World
from menagerie.generators.captions.templates import mention_order, template_of
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.rules.rule import Rule
from menagerie.generators.vocabulary import Vocabulary


def mentioned_objects(scene: Scene, recipe: Mapping[str, Any]) -> tuple[Object, ...]:
    """Return the objects that a training caption mentions, in its order. An omitted texture is ""; sizes are kept. The
    recipe's `mentioned`, `attributes` and `salient` are probabilities (`BindingRecipe`); without the first and the last
    all objects are mentioned."""
    objects = mention_order(scene, recipe["seed"], template_of(recipe).mention_order)
    if recipe["attributes"] == recipe.get("mentioned", 1) == 1 and not recipe.get("salient"):
        return objects
    random = generator(recipe["seed"], "textures told", scene.key)  # the text is part of the seed
    texture = {obj.slot: random.random() < recipe["attributes"] for obj in scene.objects}
    slots = mentioned_slots(scene, recipe)
    mentioned = (obj for obj in objects if obj.slot in slots)
    return tuple(obj if texture[obj.slot] else obj._replace(texture="") for obj in mentioned)


def denied_objects(scene: Scene, seed: int, world: World, rules: tuple[Rule, ...], chance: float) -> tuple[Object, ...]:
    """Draw the objects that a training caption negates: with probability `chance` one that the scene doesn't show, else
    none (Alhamoud et al. 2025, "Vision-language models do not understand negation": hybrid captions).

    Objects that a rule holds out are never negated, so that no training text names them.
    """
    random = generator(seed, "denied", scene.key)
    if random.random() >= chance:
        return ()
    absent = absent_objects(scene, world)
    allowed = [obj for obj in absent if not matched(rules, Scene(scene.background, (obj,)))]
    return (allowed[random.integers(len(allowed))],) if allowed else ()


def absent_objects(scene: Scene, words: World | Vocabulary) -> list[Object]:
    """Return all objects, in every size, whose animal and texture are together neither in the scene nor in its texture
    swap."""
    shown = set(product((t.animal for t in scene.objects), (t.texture for t in scene.objects)))
    objects = product(words.animals, words.textures, words.sizes or ("",))
    return [Object(*pair, "center", size) for *pair, size in objects if tuple(pair) not in shown]


def mentioned_slots(scene: Scene, recipe: Mapping[str, Any]) -> set[str]:
    """The slots of the objects that a caption mentions, at least one."""
    slots = [obj.slot for obj in scene.objects]
    random = generator(recipe["seed"], "things told", scene.key)  # the text is part of the seed
    only_salient, spare = random.random(), slots[random.integers(len(slots))]
    drawn = {slot for slot in slots if random.random() < recipe.get("mentioned", 1)}
    return {salient(scene).slot} if only_salient < recipe.get("salient", 0) else drawn or {spare}


def salient(scene: Scene) -> Object:
    """The salient object of a scene: the biggest of the foremost row, and of several equally big ones the first in slot
    order.

    In worlds without sizes all animals have about one visual size, and visible areas are known only after rendering;
    there the first slot is salient by definition.
    """
    return min(scene.objects, key=lambda obj: (SLOTS[obj.slot].position[1], -size_factor(obj.size)))
