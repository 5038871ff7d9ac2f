"""From a scene to a caption, its scene graph and its hard negative.

A caption is put in a template: one phrasing, or several of which each scene draws its own. Every
synthetic caption knows its graph exactly; nothing is parsed.
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
    """One way or several to put one meaning."""

    phrasings: tuple[str, ...]
    """Each with {things}, and with {place} ("in the desert") or {background} ("desert")."""
    relation: bool = False
    """Whether it tells where two things stand; if not, they are joined by "and"."""


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

# Add a template by adding an entry. What stands between two things is "and" or the predicate in all of them.
TEMPLATES: dict[str, Template] = {
    "conjunction": Template((PAPER,)),
    "pug-conjunction": Template((PUG,)),
    "free-conjunction": Template(FREE),
    "relation": Template((PAPER,), relation=True),
    "pug-relation": Template((PUG,), relation=True),
    "free-relation": Template(FREE, relation=True),
}


# How a caption places a scene in a background; any other background is "in the".
PLACES = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def place(scene: Scene) -> str:
    """ "in the desert"."""
    return PLACES.get(scene.background, f"in the {scene.background}")


def with_article(phrase: str) -> str:
    """ "red cat" -> "a red cat", "asphalt cat" -> "an asphalt cat"; "two red cats" and "no red cat" as they are."""
    if phrase.split()[0] in ("no", *NUMBERS):
        return phrase
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def put(
    phrasing: str, scene: Scene, things: Sequence[Thing], predicate: str = "", denied: Sequence[Thing] = ()
) -> Caption:
    """Things in the order given, in the background of `scene`; with a predicate, the first is its subject.
    After them "no white caribou" for each of `denied`, which is a node of the graph as it is said.

    The background is a node of the graph too: like the animals it is a thing that the caption
    mentions, and it gives shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    # Things that are alike are told together.
    numbers = Counter((attributes(thing), thing.animal) for thing in things)
    phrases = [counted(*named, number) for named, number in numbers.items()]
    phrases += [f"no {phrase(thing)}" for thing in denied]
    said = f" {predicate or 'and'} ".join(map(with_article, phrases))
    text = phrasing.format(things=said, place=place(scene), background=scene.background)
    edges = (Edge(predicate, 0, 1),) if predicate else ()
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def phrasing_of(scene: Scene, seed: int, template: str) -> str:
    """The phrasing of a template that `scene` gets."""
    phrasings = TEMPLATES[template].phrasings
    return phrasings[generator(seed, "phrasing", scene.key).integers(len(phrasings))]


def predicate_told(scene: Scene, things: Sequence[Thing], template: str) -> str:
    """What a template says of the first of `things`; "" where it tells no relation, or there is none."""
    if not TEMPLATES[template].relation or scene.relation is None:
        return ""
    return predicate_of(scene, [thing.slot for thing in scene.things].index(things[0].slot))


def mention_order(scene: Scene, seed: int) -> tuple[Thing, ...]:
    """The things of `scene` in random order, so that word order tells nothing of position."""
    order = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in order)


def swap_textures(scene: Scene) -> Scene:
    """The scene of the attribute-binding hard negative: two things exchange their textures and keep their sizes."""
    first, second = scene.things
    swapped = (first._replace(texture=second.texture), second._replace(texture=first.texture))
    return replace(scene, things=swapped)


def swap_places(scene: Scene) -> Scene:
    """The scene of the spatial hard negative: two things exchange their slots, each as large as it was."""
    first, second = scene.things
    return replace(scene, things=(first._replace(slot=second.slot), second._replace(slot=first.slot)))


# How each kind of split makes the scene that its hard negatives are true of.
SWAPS: dict[str, Callable[[Scene], Scene]] = {
    "binding": swap_textures,
    "spatial": swap_places,
    "dependence": swap_textures,
    "counting": other_number,
}


def caption(scene: Scene, seed: int, template: str = "conjunction") -> Caption:
    """The true caption of `scene`."""
    things = mention_order(scene, seed)
    return put(phrasing_of(scene, seed, template), scene, things, predicate_told(scene, things, template))


def hard_negative(
    scene: Scene, seed: int, template: str = "conjunction", kind: str = "binding", denied: Sequence[Thing] = ()
) -> Caption | None:
    """The same bag of words for the swapped scene: the phrasing is the true caption's, and what stands in
    a slot is mentioned where the true caption mentions what stands there.

    None where a swap changes nothing: a lone thing, or two things of one texture that would exchange it.
    """
    if len(scene.things) != 2 or (swapped := SWAPS[kind](scene)) == scene:
        return None
    thing_in = {thing.slot: thing for thing in swapped.things}
    things = [thing_in[thing.slot] for thing in mention_order(scene, seed)]
    predicate = predicate_told(swapped, things, template)
    return put(phrasing_of(scene, seed, template), swapped, things, predicate, denied)
