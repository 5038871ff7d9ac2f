"""From a scene to a caption, its scene graph and its hard negative.

Captions and graphs are built together from the scene; nothing is parsed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import attributes, counted, named, other_number, phrase, stated
from menagerie.generators.captions.relations import predicate_of
from menagerie.generators.captions.wording import TEMPLATES, Phrasing, Template


class Caption(NamedTuple):
    """A caption and the scene graph that it states."""

    text: str
    graph: SceneGraph


AnyTemplate = str | Template  # by name, or as it is

# The words for a background; any other is "in the ...".
PLACES = {"ocean floor": "on the ocean floor", "circus": "at the circus"}


def place(scene: Scene) -> str:
    """ "in the desert"."""
    return PLACES.get(scene.background, f"in the {scene.background}")


def build_caption(
    phrasing: Phrasing, scene: Scene, things: Sequence[Thing], predicate: str = "", denied: Sequence[Thing] = ()
) -> Caption:
    """The caption of `things`, in the order given, in the background of `scene`, with its graph.

    With a predicate, the first thing is its subject. Each of `denied` adds "no white caribou" to the text and, as a
    node, to the graph. The background is a node too: the caption mentions it like the animals, and it gives
    shuffled graphs (OC-CLIP, eq. 6) a third node to draw.
    """
    numbers = Counter(thing._replace(slot="") for thing in things)  # like things together: "two red cats"
    phrases = [counted(attributes(thing), thing.animal, number) for thing, number in numbers.items()]
    phrases += [f"no {phrase(thing)}" for thing in denied]
    joined = joined_things(phrasing.template, numbers, predicate, denied)
    text = phrasing.text.format(things=joined, place=place(scene), background=scene.background)
    edges = (Edge(predicate, 0, 1),) if predicate else ()
    return Caption(text, SceneGraph((*phrases, scene.background), edges))


def joined_things(template: Template, numbers: Counter[Thing], predicate: str, denied: Sequence[Thing]) -> str:
    """ "a red cat and a white pig", "the cat is red and the pig is white", "a red cat above a white pig"."""
    word = stated if template.statement and not predicate else named
    texts = [word(thing, number, template.article) for thing, number in numbers.items()]
    texts += [word(thing, no=True) for thing in denied]
    joint = f"is {predicate}" if template.statement else predicate
    return f" {joint if predicate else template.conjunction} ".join(texts)


def bare_mentions(template: Template, animals: Iterable[str]) -> Iterator[str]:
    """ "a cat", "the cat is there": each animal as captions mention it without its texture."""
    word = stated if template.statement else named
    return (word(Thing(animal, "", ""), 1, template.article) for animal in animals)


def as_template(template: AnyTemplate) -> Template:
    """The template, by its name or itself."""
    return TEMPLATES[template] if isinstance(template, str) else template


def phrasing_of(scene: Scene, seed: int, template: AnyTemplate) -> Phrasing:
    """The phrasing of a template that is drawn for `scene`."""
    template = as_template(template)
    phrasings = template.phrasings
    if len(phrasings) == 1:  # the draw, of which there is one for each scene, takes most of a caption's time
        return Phrasing(phrasings[0], template)
    return Phrasing(phrasings[generator(seed, "phrasing", scene.key).integers(len(phrasings))], template)


def predicate_for(scene: Scene, things: Sequence[Thing], template: AnyTemplate) -> str:
    """The predicate whose subject is the first of `things`; "" if the template or the scene has no relation."""
    if not as_template(template).relation or scene.relation is None:
        return ""
    return predicate_of(scene, [thing.slot for thing in scene.things].index(things[0].slot))


@lru_cache(maxsize=16)  # caption and hard negative of a scene have one order
def mention_order(scene: Scene, seed: int, order: str = "random") -> tuple[Thing, ...]:
    """The things of `scene`, by default in random order, so that word order carries no information about position."""
    if order == "slots":
        return scene.things
    drawn = generator(seed, "mention", scene.key).permutation(len(scene.things))
    return tuple(scene.things[i] for i in drawn)


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


def caption(scene: Scene, seed: int, template: AnyTemplate = "conjunction") -> Caption:
    """The true caption of `scene`."""
    things = mention_order(scene, seed, as_template(template).mention_order)
    return build_caption(phrasing_of(scene, seed, template), scene, things, predicate_for(scene, things, template))


def hard_negative(
    scene: Scene, seed: int, template: AnyTemplate = "conjunction", kind: str = "binding", denied: Sequence[Thing] = ()
) -> Caption | None:
    """The caption of the swapped scene, with the true caption's phrasing and bag of words.

    Slots are mentioned in the order of the true caption. None where a swap changes nothing: for a single thing, or
    where two things of one texture would exchange it.
    """
    if len(scene.things) != 2 or (swapped := SWAPS[kind](scene)) == scene:
        return None
    thing_in = {thing.slot: thing for thing in swapped.things}
    things = [thing_in[thing.slot] for thing in mention_order(scene, seed, as_template(template).mention_order)]
    predicate = predicate_for(swapped, things, template)
    return build_caption(phrasing_of(scene, seed, template), swapped, things, predicate, denied)
