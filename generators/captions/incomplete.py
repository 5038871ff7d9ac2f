"""Training captions that tell less than all of their scene.

Three properties of the captions of photographs on which CLIP fails to learn binding (Gurung, Hoffmann and Brox
2025, "Common data properties limit object-attribute binding in CLIP"): things are not mentioned, attributes are
left out, and what stands out is mentioned rather than the rest. All draws depend on (seed, scene) only.
"""

from itertools import product
from typing import NamedTuple

from envs.common.seeds import generator
from envs.scene import Scene, Thing
from envs.slots import size_factor
from envs.world import World
from generators.captions.templates import mention_order
from generators.rules.hold_out import matched
from generators.rules.rule import Rule
from generators.vocabulary import Vocabulary


class Chances(NamedTuple):
    """What the captions of training scenes tell."""

    mentioned: float
    """That a thing of two is mentioned; one always is."""
    attributes: float
    """That a mention has its texture."""
    salient: float
    """That nothing but the salient thing of two is mentioned, whatever `mentioned` says (see `salient_slot`)."""
    negated: float
    """That something is denied that isn't there: "a red cat and no white caribou" (Alhamoud et al. 2025,
    "Vision-language models do not understand negation": hybrid captions)."""


def told_things(scene: Scene, seed: int, chances: Chances) -> tuple[Thing, ...]:
    """What the caption of a training scene mentions, in mention order; a texture left out is "", sizes stay."""
    random = generator(seed, "textures told", scene.key)
    texture = {thing.slot: random.random() < chances.attributes for thing in scene.things}
    slots = mentioned_slots(scene, seed, chances)
    things = [thing for thing in mention_order(scene, seed) if thing.slot in slots]
    return tuple(thing if texture[thing.slot] else thing._replace(texture="") for thing in things)


def denied_things(scene: Scene, seed: int, world: World, rules: tuple[Rule, ...], chance: float) -> tuple[Thing, ...]:
    """What the caption of a training scene denies: mostly nothing, else one thing that isn't there.

    What a rule holds out isn't denied either: the model shall not have read of it.
    """
    random = generator(seed, "denied", scene.key)
    if random.random() >= chance:
        return ()
    absent = absent_things(scene, world)
    allowed = [thing for thing in absent if not matched(rules, Scene(scene.background, (thing,)))]
    return (allowed[random.integers(len(allowed))],) if allowed else ()


def absent_things(scene: Scene, words: World | Vocabulary) -> list[Thing]:
    """The textured animals that neither the scene nor its swap shows, in all sizes."""
    shown = set(product((t.animal for t in scene.things), (t.texture for t in scene.things)))
    things = product(words.animals, words.textures, words.sizes or ("",))
    return [Thing(*pair, "center", size) for *pair, size in things if tuple(pair) not in shown]


def mentioned_slots(scene: Scene, seed: int, chances: Chances) -> set[str]:
    """Where the things that a caption mentions stand."""
    slots = [thing.slot for thing in scene.things]
    random = generator(seed, "things told", scene.key)
    only_salient, spare = random.random(), slots[random.integers(len(slots))]
    drawn = {slot for slot in slots if random.random() < chances.mentioned}
    return {salient_slot(scene)} if only_salient < chances.salient else drawn or {spare}


def salient_slot(scene: Scene) -> str:
    """Where the thing stands that stands out: the biggest one, of equally big ones the one in the first slot.

    Without sizes our animals are built to one visual size, and how much of each is visible is known only when it
    is rendered: then it is the first slot by definition.
    """
    return max(scene.things, key=lambda thing: size_factor(thing.size)).slot
