"""Training captions that describe their scene incompletely.

They have three properties of photographs' captions with which CLIP fails to learn binding (Gurung, Hoffmann and Brox
2025, "Common data properties limit object-attribute binding in CLIP"): objects are not mentioned, attributes are left
out, and salient objects are mentioned more often. All draws depend on (seed, scene) only.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import SLOTS, size_factor
from menagerie.envs.world import World
from menagerie.generators.captions.templates import mention_order, template_of
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.rules.rule import Rule
from menagerie.generators.vocabulary import Vocabulary


def mentioned_things(scene: Scene, recipe: Mapping[str, Any]) -> tuple[Thing, ...]:
    """Return the things that a training caption mentions, in its order. An omitted texture is ""; sizes are kept. The
    recipe's `mentioned`, `attributes` and `salient` are probabilities (`BindingRecipe`); without the first and the last
    all things are mentioned."""
    things = mention_order(scene, recipe["seed"], template_of(recipe).mention_order)
    if recipe["attributes"] == recipe.get("mentioned", 1) == 1 and not recipe.get("salient"):
        return things
    random = generator(recipe["seed"], "textures told", scene.key)  # the text is part of the seed
    texture = {thing.slot: random.random() < recipe["attributes"] for thing in scene.things}
    slots = mentioned_slots(scene, recipe)
    mentioned = (thing for thing in things if thing.slot in slots)
    return tuple(thing if texture[thing.slot] else thing._replace(texture="") for thing in mentioned)


def denied_things(scene: Scene, seed: int, world: World, rules: tuple[Rule, ...], chance: float) -> tuple[Thing, ...]:
    """Draw the things that a training caption negates: with probability `chance` one that the scene doesn't show, else
    none (Alhamoud et al. 2025, "Vision-language models do not understand negation": hybrid captions).

    Things that a rule holds out are never negated, so that no training text names them.
    """
    random = generator(seed, "denied", scene.key)
    if random.random() >= chance:
        return ()
    absent = absent_things(scene, world)
    allowed = [thing for thing in absent if not matched(rules, Scene(scene.background, (thing,)))]
    return (allowed[random.integers(len(allowed))],) if allowed else ()


def absent_things(scene: Scene, words: World | Vocabulary) -> list[Thing]:
    """Return all things, in every size, whose animal and texture are together neither in the scene nor in its texture
    swap."""
    shown = set(product((t.animal for t in scene.things), (t.texture for t in scene.things)))
    things = product(words.animals, words.textures, words.sizes or ("",))
    return [Thing(*pair, "center", size) for *pair, size in things if tuple(pair) not in shown]


def mentioned_slots(scene: Scene, recipe: Mapping[str, Any]) -> set[str]:
    """The slots of the things that a caption mentions, at least one."""
    slots = [thing.slot for thing in scene.things]
    random = generator(recipe["seed"], "things told", scene.key)  # the text is part of the seed
    only_salient, spare = random.random(), slots[random.integers(len(slots))]
    drawn = {slot for slot in slots if random.random() < recipe.get("mentioned", 1)}
    return {salient(scene).slot} if only_salient < recipe.get("salient", 0) else drawn or {spare}


def salient(scene: Scene) -> Thing:
    """The salient thing of a scene: the biggest of the foremost row, and of several equally big ones the first in slot
    order.

    In worlds without sizes all animals have about one visual size, and visible areas are known only after rendering;
    there the first slot is salient by definition.
    """
    return min(scene.things, key=lambda thing: (SLOTS[thing.slot].position[1], -size_factor(thing.size)))
