"""From a scene to a caption, its scene graph and its hard negative.

Every synthetic caption knows its graph exactly; nothing is parsed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from envs.scene import Scene, Thing
from generators.graph import Edge, SceneGraph
from generators.relations import predicate_of
from generators.seeds import generator


class Caption(NamedTuple):
    """A caption and the scene graph that it states."""

    text: str
    graph: SceneGraph


# How a caption places a scene in a background; any other background is "in the".
PLACES = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def place(scene: Scene) -> str:
    """ "in the desert"."""
    return PLACES.get(scene.background, f"in the {scene.background}")


def with_article(phrase: str) -> str:
    """ "red cat" -> "a red cat", "asphalt cat" -> "an asphalt cat"."""
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def conjunction(scene: Scene, things: tuple[Thing, ...]) -> Caption:
    """ "a red cat and a white caribou in the desert": things in the order given, no relation.

    The background is a node of the graph too: like the animals it is a thing that the caption
    mentions, and it gives shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    phrases = [f"{thing.texture} {thing.animal}" for thing in things]
    text = f"{' and '.join(map(with_article, phrases))} {place(scene)}"
    return Caption(text, SceneGraph((*phrases, scene.background)))


def relation(scene: Scene, things: tuple[Thing, ...]) -> Caption:
    """ "a red cat to the left of a white caribou in the desert": what is mentioned first is the subject.

    A scene without a relation gets a `conjunction`.
    """
    if scene.relation is None:
        return conjunction(scene, things)
    slots = [thing.slot for thing in scene.things]
    return related(scene, things, predicate_of(scene, slots.index(things[0].slot)))


def related(scene: Scene, things: tuple[Thing, ...], predicate: str) -> Caption:
    """ "a red cat above a white caribou in the desert", true or not."""
    phrases = [f"{thing.texture} {thing.animal}" for thing in things]
    text = f"{with_article(phrases[0])} {predicate} {with_article(phrases[1])} {place(scene)}"
    return Caption(text, SceneGraph((*phrases, scene.background), (Edge(predicate, 0, 1),)))


# A template turns a scene and a mention order into a caption. Add one by adding an entry.
TEMPLATES: dict[str, Callable[[Scene, tuple[Thing, ...]], Caption]] = {
    "conjunction": conjunction,
    "relation": relation,
}


def mention_order(scene: Scene, seed: int) -> tuple[Thing, ...]:
    """The things of `scene` in random order, so that word order tells nothing of position."""
    order = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in order)


def swap_textures(scene: Scene) -> Scene:
    """The scene of the attribute-binding hard negative: two things exchange their textures."""
    first, second = scene.things
    swapped = (first._replace(texture=second.texture), second._replace(texture=first.texture))
    return replace(scene, things=swapped)


def swap_places(scene: Scene) -> Scene:
    """The scene of the spatial hard negative: two things exchange their slots."""
    first, second = scene.things
    return replace(scene, things=(first._replace(slot=second.slot), second._replace(slot=first.slot)))


# How each kind of split makes the scene that its hard negatives are true of.
SWAPS: dict[str, Callable[[Scene], Scene]] = {
    "binding": swap_textures,
    "spatial": swap_places,
    "dependence": swap_textures,
}


def caption(scene: Scene, seed: int, template: str = "conjunction") -> Caption:
    """The true caption of `scene`."""
    return TEMPLATES[template](scene, mention_order(scene, seed))


def hard_negative(scene: Scene, seed: int, template: str = "conjunction", kind: str = "binding") -> Caption | None:
    """The same bag of words for the swapped scene: what stands in a slot is mentioned where the true
    caption mentions what stands there.

    None where a swap changes nothing: a lone thing, or two things of one texture that would exchange it.
    """
    if len(scene.things) != 2 or (swapped := SWAPS[kind](scene)) == scene:
        return None
    thing_in = {thing.slot: thing for thing in swapped.things}
    return TEMPLATES[template](swapped, tuple(thing_in[thing.slot] for thing in mention_order(scene, seed)))
