"""The content of a caption, read from its graph. Other captions are made from it: false ones, or ones of a part."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import NUMBERS, attributes, counted
from menagerie.generators.captions.relations import CONVERSES
from menagerie.generators.captions.templates import (
    Caption,
    Phrasing,
    Predicates,
    build_caption,
    phrasing_of,
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


class Contents:
    """Reads the contents of captions and writes contents as captions, in the wording of a split's recipe."""

    def __init__(self, recipe: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.seed, self.template = recipe["seed"], template_of(recipe)
        self.known = dict(phrases(vocabulary))
        self._phrasings: dict[Scene, Phrasing] = {}  # drawn once for each scene
        self._read: dict[tuple[Scene, str], Content] = {}

    def read(self, scene: Scene, caption: Caption) -> Content:
        """Read the content of a caption of `scene`, and cache it. Raises if the caption isn't worded as the recipe
        says."""
        if (scene, caption.text) not in self._read:
            self._read[scene, caption.text] = self.parsed(scene, caption)
        return self._read[scene, caption.text]

    def parsed(self, scene: Scene, caption: Caption) -> Content:
        """Read the content of a caption without the cache."""
        nodes = caption.graph.nodes[:-1]  # the last is the background
        try:
            things = [thing for node in nodes if not node.startswith("no ") for thing in self.shown(scene, node)]
            denied = [self.known[node.removeprefix("no ")] for node in nodes if node.startswith("no ")]
        except KeyError:
            things = denied = []
        stated = tuple(edge.predicate for edge in caption.graph.edges)
        predicate = stated[0] if stated and self.template.relation else stated
        content = Content(scene, tuple(things), predicate or "", tuple(denied))
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
        return Content(content.scene, tuple(things), predicate)

    def state(self, content: Content) -> Caption:
        """Write a content as a caption, in the phrasing drawn for its scene."""
        scene = content.scene
        if scene not in self._phrasings:
            self._phrasings[scene] = phrasing_of(scene, self.seed, self.template)
        return build_caption(self._phrasings[scene], scene, content.things, content.predicate, content.denied)


def phrases(words: Vocabulary) -> Iterator[tuple[str, Thing]]:
    """Yield every noun phrase of a vocabulary, in every number, and the thing that it names, without a slot."""
    for animal, texture, size in product(words.animals, ("", *words.textures), ("", *words.sizes)):
        thing = Thing(animal, texture, "", size)
        for number in range(1, len(NUMBERS) + 2):
            yield counted(attributes(thing), animal, number), thing


def affirmed(graph: SceneGraph) -> SceneGraph:
    """Return the graph without its negated nodes. Edges stay as they are: negated nodes have none."""
    return graph._replace(nodes=tuple(node for node in graph.nodes if not node.startswith("no ")))
