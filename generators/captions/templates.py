"""From a scene to a caption, its scene graph and its hard negative.

A template has one phrasing, or several from which one is drawn for each scene. Captions and graphs are
built together from the scene; nothing is parsed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from envs.common.seeds import generator
from envs.scene import Scene, Thing
from generators.captions.graph import Edge, SceneGraph
from generators.captions.phrases import NUMBERS, attributes, counted, other_number, phrase
from generators.captions.relations import predicate_of


class Caption(NamedTuple):
    """A caption and the scene graph that it states."""

    text: str
    graph: SceneGraph


class Template(NamedTuple):
    """One or several phrasings of the same content."""

    phrasings: tuple[str, ...]
    """Each with {things}, and with {place} ("in the desert") or {background} ("desert")."""
    relation: bool = False
    """Whether it states the relation of two things; if not, they are joined by "and"."""


# OC-CLIP's: "a red cat and a white caribou in the desert".
PAPER = "{things} {place}"
# In the manner of PUG:SPAR (Bordes et al. 2023). "In a ... environment" is a word longer, and the
# longest text of the world pug would no longer fit into the 20 tokens of our small text towers.
PUG = "a photo of {things} in {background} surroundings"
FREE = (
    PAPER,
    PUG,
    "an image of {things} {place}",
    "{place} there is {things}",
    "{things} seen {place}",
    "the {background} with {things}",
)

# To add a template, add an entry. Two things are always joined by "and" or by the predicate.
TEMPLATES: dict[str, Template] = {
    "conjunction": Template((PAPER,)),
    "pug-conjunction": Template((PUG,)),
    "free-conjunction": Template(FREE),
    "relation": Template((PAPER,), relation=True),
    "pug-relation": Template((PUG,), relation=True),
    "free-relation": Template(FREE, relation=True),
}


# The words for a background; any other is "in the ...".
PLACES = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def place(scene: Scene) -> str:
    """ "in the desert"."""
    return PLACES.get(scene.background, f"in the {scene.background}")


def with_article(phrase: str) -> str:
    """ "red cat" -> "a red cat", "asphalt cat" -> "an asphalt cat"; "two red cats" and "no red cat" unchanged."""
    if phrase.split()[0] in ("no", *NUMBERS):
        return phrase
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def build_caption(
    phrasing: str, scene: Scene, things: Sequence[Thing], predicate: str = "", denied: Sequence[Thing] = ()
) -> Caption:
    """The caption of `things`, in the order given, in the background of `scene`, with its graph.

    With a predicate, the first thing is its subject. Each of `denied` adds "no white caribou" to the text and, as a
    node, to the graph. The background is a node too: the caption mentions it like the animals, and it gives
    shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    # Like things are mentioned together: "two red cats".
    numbers = Counter((attributes(thing), thing.animal) for thing in things)
    phrases = [counted(*named, number) for named, number in numbers.items()]
    phrases += [f"no {phrase(thing)}" for thing in denied]
    joined = f" {predicate or 'and'} ".join(map(with_article, phrases))
    text = phrasing.format(things=joined, place=place(scene), background=scene.background)
    edges = (Edge(predicate, 0, 1),) if predicate else ()
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def phrasing_of(scene: Scene, seed: int, template: str) -> str:
    """The phrasing of a template that is drawn for `scene`."""
    phrasings = TEMPLATES[template].phrasings
    return phrasings[generator(seed, "phrasing", scene.key).integers(len(phrasings))]


def predicate_for(scene: Scene, things: Sequence[Thing], template: str) -> str:
    """The predicate whose subject is the first of `things`; "" if the template or the scene has no relation."""
    if not TEMPLATES[template].relation or scene.relation is None:
        return ""
    return predicate_of(scene, [thing.slot for thing in scene.things].index(things[0].slot))


def mention_order(scene: Scene, seed: int) -> tuple[Thing, ...]:
    """The things of `scene` in random order, so that word order carries no information about position."""
    order = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in order)


def swap_textures(scene: Scene) -> Scene:
    """The scene of the attribute-binding hard negative: two things exchange their textures and keep their sizes."""
    first, second = scene.things
    swapped = (first._replace(texture=second.texture), second._replace(texture=first.texture))
    return replace(scene, things=swapped)


def swap_places(scene: Scene) -> Scene:
    """The scene of the spatial hard negative: two things exchange their slots and keep their sizes."""
    first, second = scene.things
    return replace(scene, things=(first._replace(slot=second.slot), second._replace(slot=first.slot)))


# Kind of split -> function from a scene to the one that its hard negative describes.
SWAPS: dict[str, Callable[[Scene], Scene]] = {
    "binding": swap_textures,
    "spatial": swap_places,
    "dependence": swap_textures,
    "counting": other_number,
}


def caption(scene: Scene, seed: int, template: str = "conjunction") -> Caption:
    """The true caption of `scene`."""
    things = mention_order(scene, seed)
    return build_caption(phrasing_of(scene, seed, template), scene, things, predicate_for(scene, things, template))


def hard_negative(
    scene: Scene, seed: int, template: str = "conjunction", kind: str = "binding", denied: Sequence[Thing] = ()
) -> Caption | None:
    """The caption of the swapped scene, with the true caption's phrasing and bag of words.

    Slots are mentioned in the order of the true caption. None where a swap changes nothing: for a single thing, or
    where two things of one texture would exchange it.
    """
    if len(scene.things) != 2 or (swapped := SWAPS[kind](scene)) == scene:
        return None
    thing_in = {thing.slot: thing for thing in swapped.things}
    things = [thing_in[thing.slot] for thing in mention_order(scene, seed)]
    predicate = predicate_for(swapped, things, template)
    return build_caption(phrasing_of(scene, seed, template), swapped, things, predicate, denied)
