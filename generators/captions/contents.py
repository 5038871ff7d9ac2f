"""The content of a caption: what it says of its scene, in which order and phrasing.

Split files record contents. Texts and graphs are written from them when they are asked for, and other captions are made
of them: of the swap of a scene, in which two objects exchange their textures or places (`SplitRecipe.swap`), or ones of
a part.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.phrases import NUMBERS, attribute_words, noun_phrase
from menagerie.generators.captions.relations import converses
from menagerie.generators.captions.templates import (
    Caption,
    Content,
    template_of,
    write_caption,
)
from menagerie.generators.vocabulary import Vocabulary


def swapped_content(content: Content, swap: Callable[[Scene], Scene]) -> Content:
    """The content of the hard negative: the same slots in the same order, in the scene that `swap` makes. A texture
    that is left out of an object stays left out of it. If the swap changes the number of objects, all are mentioned."""
    mentioned = {obj.slot: obj for obj in content.objects}
    bare = tuple(mentioned.get(obj.slot, obj) for obj in content.scene.objects)
    swapped = swap(content.scene if bare == content.scene.objects else replace(content.scene, objects=bare))
    if len(swapped.objects) != len(bare):
        return content._replace(objects=swapped.objects)
    there = {obj.slot: obj for obj in swapped.objects}
    return content._replace(objects=tuple(there[obj.slot] for obj in content.objects))


def with_exchanged(scene: Scene, pair: Sequence[int], field: str) -> Scene:
    """Return the scene with the values of a field exchanged between two of its objects. Raises `ValueError` unless they
    are two."""
    one, other = pair
    objects = list(scene.objects)
    objects[one] = scene.objects[one]._replace(**{field: getattr(scene.objects[other], field)})
    objects[other] = scene.objects[other]._replace(**{field: getattr(scene.objects[one], field)})
    return replace(scene, objects=tuple(objects))


def exchanged_objects(scene: Scene) -> tuple[int, int]:
    """Return the indices of the two objects of a multi-object scene whose textures a hard negative exchanges.

    They depend on slots, background and view, and are the same for a scene and its swap. Raises `ValueError` for a
    single object.
    """
    return exchanged_places(tuple(obj.slot for obj in scene.objects), scene.background, scene.view)


def exchanged_places(slots: tuple[str, ...], background: str, view: int) -> tuple[int, int]:
    """Return the indices of the two exchanged objects in a scene with these slots, sorted by name."""
    pairs = list(combinations(range(len(slots)), 2))
    if not pairs:
        raise ValueError("a single object has nothing to exchange")
    return pairs[zlib.crc32(f"{'+'.join(slots)}|{background}|{view}".encode()) % len(pairs)]


class Contents:
    """Makes other captions of contents, in the template of a split's recipe."""

    def __init__(self, recipe: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.template = template_of(recipe)
        self.known = dict(phrases(vocabulary))

    def read(self, whole: Content, caption: Caption) -> Content:
        """Read the content of a caption that says `whole` or a part of it. Raises if it isn't worded as the recipe
        says."""
        if write_caption(whole, self.template).text == caption.text:
            return whole
        nodes = caption.graph.nodes[:-1]  # the last is the background
        try:
            named = [node for node in nodes if not node.startswith("no ")]
            objects = [obj for node in named for obj in self.objects_named(whole.scene, node)]
            denied = [self.known[node.removeprefix("no ")] for node in nodes if node not in named]
            predicates = tuple(edge.predicate for edge in caption.graph.edges)
            content = Content(whole.scene, tuple(objects), predicates, tuple(denied), whole.phrasing)
            if write_caption(content, self.template).text == caption.text:
                return content
        except (KeyError, ValueError):  # unknown phrases, or fewer objects than a chain of so many relations has
            pass
        raise UserError(
            f"{caption.text!r} isn't worded as the recipe of its split says, so no other caption can be made of it; "
            "make the split again, or leave --text-negatives at swap and --flair.captions at 1"
        )

    def objects_named(self, scene: Scene, node: str) -> list[Object]:
        """Return the objects of `scene` with a node's animal, and with the texture and size that the node states."""
        named = self.known[node]
        alike = [obj for obj in scene.objects if obj.animal == named.animal]
        return [obj._replace(texture=named.texture, size=named.size) for obj in alike]

    def parts(self, content: Content, count: int, seed: int) -> list[Caption]:
        """Write `count` captions, each of a random part of a content."""
        parts = [content._replace(denied=())] * count
        if len(content.kinds) > 1:  # else there is nothing to draw
            random = generator(seed, "parts", content.scene.key)
            parts = [self.part(content, random) for _ in range(count)]
        return [write_caption(part, self.template) for part in parts]

    def part(self, content: Content, random: np.random.Generator) -> Content:
        """Draw a random part of a content, with at least one kind of object and nothing negated. The order of objects
        is random if the template's is."""
        kinds = content.kinds
        chosen = random.permutation(len(kinds))[: random.integers(1, len(kinds) + 1)]
        if self.template.mention_order != "random":
            chosen = np.sort(chosen)
        objects = [obj for i in chosen for obj in content.objects if obj._replace(slot="") == kinds[i]]
        predicates = content.predicates if len(chosen) == len(kinds) else ()
        if predicates and tuple(objects) != content.objects:  # which breaks a chain, and turns the relation of two
            predicates = (converses()[predicates[0]],) if self.template.relation else ()
        return Content(content.scene, tuple(objects), predicates, phrasing=content.phrasing)


def phrases(words: Vocabulary) -> Iterator[tuple[str, Object]]:
    """Yield every noun phrase of a vocabulary, in every number, and the object that it names, without a slot."""
    for animal, texture, size in product(words.animals, ("", *words.textures), ("", *words.sizes)):
        obj = Object(animal, texture, "", size)
        for number in range(1, len(NUMBERS) + 2):
            yield noun_phrase(attribute_words(obj), animal, number), obj
