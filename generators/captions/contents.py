"""The content of a caption: what it says of its scene, in which order and phrasing.

Split files record contents. Texts and graphs are written from them when they are asked for, and other captions are made
of them: false ones, or ones of a part.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.captions.phrases import NUMBERS, attributes, counted
from menagerie.generators.captions.relations import CONVERSES
from menagerie.generators.captions.templates import (
    Caption,
    Phrasing,
    Predicates,
    Template,
    build_caption,
    template_of,
)
from menagerie.generators.vocabulary import Vocabulary


class Content(NamedTuple):
    """The content of a caption of `scene`. The things of a false caption differ from the scene's."""

    scene: Scene
    things: tuple[Thing, ...]
    """The things in the order of the caption; an omitted texture is ""."""
    predicate: Predicates = ""
    """Predicate of the first thing to the second, or the predicates of a chain; "" if none is stated."""
    denied: tuple[Thing, ...] = ()
    phrasing: int = 0
    """The number of the template's phrasing in which the caption is written."""
    negative: bool = False
    """Whether the caption has a hard negative, which is true of the swapped scene."""

    @property
    def kinds(self) -> list[Thing]:
        """The distinct things, ignoring slots."""
        return list(dict.fromkeys(thing._replace(slot="") for thing in self.things))

    def with_things(self, change: Mapping[Thing, Thing]) -> "Content":
        """Return a copy with things replaced as `change` says, whose things have no slots. Each new thing gets the slot
        of the old one."""
        bare = [thing._replace(slot="") for thing in self.things]
        pairs = zip(self.things, bare, strict=True)
        return self._replace(things=tuple(change.get(kind, kind)._replace(slot=thing.slot) for thing, kind in pairs))


def write_caption(content: Content, template: Template) -> Caption:
    """Write a content as a caption with its graph."""
    phrasing = Phrasing(template.phrasings[content.phrasing], template)
    return build_caption(phrasing, content.scene, content.things, content.predicate, content.denied)


def swapped_content(content: Content, kind: str) -> Content:
    """The content of the hard negative: the same slots in the same order, in the swapped scene. A texture that is left
    out of a thing stays left out of it. If the swap changes the number of things, all are mentioned."""
    mentioned = {thing.slot: thing for thing in content.things}
    bare = tuple(mentioned.get(thing.slot, thing) for thing in content.scene.things)
    swapped = SWAPS[kind](content.scene if bare == content.scene.things else replace(content.scene, things=bare))
    if len(swapped.things) != len(bare):
        return content._replace(things=swapped.things)
    there = {thing.slot: thing for thing in swapped.things}
    return content._replace(things=tuple(there[thing.slot] for thing in content.things))


class Contents:
    """Makes other captions of contents, in the template of a split's recipe."""

    def __init__(self, recipe: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.template = template_of(recipe)
        self.known = dict(phrases(vocabulary))

    def read(self, whole: Content, caption: Caption) -> Content:
        """Read the content of a caption that says `whole` or a part of it. Raises if it isn't worded as the recipe
        says."""
        if self.state(whole).text == caption.text:
            return whole
        scene = whole.scene
        nodes = caption.graph.nodes[:-1]  # the last is the background
        try:
            things = [thing for node in nodes if not node.startswith("no ") for thing in self.shown(scene, node)]
            denied = [self.known[node.removeprefix("no ")] for node in nodes if node.startswith("no ")]
        except KeyError:
            things = denied = []
        stated = tuple(edge.predicate for edge in caption.graph.edges)
        predicate = stated[0] if stated and self.template.relation else stated
        content = Content(scene, tuple(things), predicate or "", tuple(denied), whole.phrasing)
        if self.state(content).text != caption.text:
            raise UserError(
                f"{caption.text!r} isn't worded as the recipe of its split says, so no other caption can be "
                "made of it; make the split again, or leave --text-negatives at swap and --flair.captions at 1"
            )
        return content

    def shown(self, scene: Scene, node: str) -> list[Thing]:
        """Return the things of `scene` with a node's animal, and with the texture and size that the node states."""
        stated = self.known[node]
        alike = [thing for thing in scene.things if thing.animal == stated.animal]
        return [thing._replace(texture=stated.texture, size=stated.size) for thing in alike]

    def parts(self, content: Content, count: int, seed: int) -> list[Caption]:
        """Write `count` captions, each of a random part of a content."""
        if len(content.kinds) == 1:  # there is nothing to draw
            return [self.state(content._replace(denied=()))] * count
        random = generator(seed, "parts", content.scene.key)
        return [self.state(self.part(content, random)) for _ in range(count)]

    def part(self, content: Content, random: np.random.Generator) -> Content:
        """Draw a random part of a content, with at least one kind of thing and nothing negated. The order of things is
        random if the template's is."""
        kinds = content.kinds
        chosen = random.permutation(len(kinds))[: random.integers(1, len(kinds) + 1)]
        if self.template.mention_order != "random":
            chosen = np.sort(chosen)
        things = [thing for i in chosen for thing in content.things if thing._replace(slot="") == kinds[i]]
        predicate = content.predicate if len(chosen) == len(kinds) else ""
        if isinstance(predicate, tuple):  # a chain, which another order would break
            predicate = predicate if tuple(things) == content.things else ""
        elif predicate and things[0] != content.things[0]:
            predicate = CONVERSES[predicate]
        return Content(content.scene, tuple(things), predicate, phrasing=content.phrasing)

    def state(self, content: Content) -> Caption:
        """Write a content as a caption."""
        return write_caption(content, self.template)


def phrases(words: Vocabulary) -> Iterator[tuple[str, Thing]]:
    """Yield every noun phrase of a vocabulary, in every number, and the thing that it names, without a slot."""
    for animal, texture, size in product(words.animals, ("", *words.textures), ("", *words.sizes)):
        thing = Thing(animal, texture, "", size)
        for number in range(1, len(NUMBERS) + 2):
            yield counted(attributes(thing), animal, number), thing


def affirmed(graph: SceneGraph) -> SceneGraph:
    """Return the graph without its negated nodes. Edges stay as they are: negated nodes have none."""
    return graph._replace(nodes=tuple(node for node in graph.nodes if not node.startswith("no ")))
