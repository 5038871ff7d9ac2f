"""Photographs with annotated phrases and relations; captions are made from them as in OC-CLIP's appendix A.7.

A caption's graph consists of the annotations that the caption was made from; nothing is parsed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.identity import generator
from menagerie.envs.core.reading import decode_json
from menagerie.generators.captioned import Indices
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.photographs import Photographs, check_some_left
from menagerie.generators.sources.rows import FileRow
from menagerie.generators.sources.texts import Texts, refusal

MOST_OBJECTS = 3
WORDS = re.compile(r"\w+|[^\w\s]")


class Relation(NamedTuple):
    """Two phrases of a photograph, by index, and their predicate."""

    subject: int
    predicate: str
    object: int


class Annotations(NamedTuple):
    """The phrases of one photograph, and the relations between them."""

    phrases: tuple[str, ...]
    relations: tuple[Relation, ...] = ()


# Makes a caption of annotations with at least one phrase.
Recipe = Callable[[Annotations, np.random.Generator], Caption]


def two_regions(known: Annotations, random: np.random.Generator) -> Caption:
    """Make "A photo of a {region} and a {region}", or of one region if there is only one; the regions are nodes."""
    return regions_caption(draw_phrases(known.phrases, 2, random))


def relation_or_objects(known: Annotations, random: np.random.Generator) -> Caption:
    """Make "A photo of {subject} {relation} {object}", or, without relations, a caption of up to three objects."""
    if known.relations:
        return relation_caption(known, known.relations[int(random.integers(len(known.relations)))])
    return objects_caption(draw_phrases(known.phrases, MOST_OBJECTS, random))


def regions_caption(phrases: Sequence[str]) -> Caption:
    """Make a caption of one or two region phrases, each of which is a node of its graph."""
    return Caption(f"A photo of a {' and a '.join(phrases)}", SceneGraph(tuple(phrases)))


def objects_caption(phrases: Sequence[str]) -> Caption:
    return Caption(f"A photo of {', '.join(phrases)}", SceneGraph(tuple(phrases)))


def relation_caption(known: Annotations, relation: Relation) -> Caption:
    subject, target = known.phrases[relation.subject], known.phrases[relation.object]
    graph = SceneGraph((subject, target), (Edge(relation.predicate, 0, 1),))
    return Caption(f"A photo of {subject} {relation.predicate} {target}", graph)


def draw_phrases(phrases: Sequence[str], most: int, random: np.random.Generator) -> list[str]:
    """Draw at most `most` of the distinct phrases, in random order."""
    different = list(dict.fromkeys(phrases))
    return [different[k] for k in random.permutation(len(different))[:most]]


def length(phrase: str) -> tuple[int, int, str]:
    """A sort key: number of words, then number of letters, then the phrase."""
    return len(WORDS.findall(phrase)), len(phrase), phrase


def longest_caption(recipe: Recipe, known: Annotations) -> Iterator[Caption]:
    """Yield a caption at least as long, in words, as any that `recipe` can make. If its captions state relations, yield
    all of them.
    """
    phrases = sorted(set(known.phrases), key=length, reverse=True)
    if recipe is two_regions:
        yield regions_caption(phrases[:2])
    elif known.relations:
        yield from (relation_caption(known, relation) for relation in known.relations)
    else:
        yield objects_caption(phrases[:MOST_OBJECTS])


class AnnotatedPhotographs(Photographs):
    """Photographs with annotations; each draw makes a caption of an image's annotations."""

    listed = False

    def __init__(
        self,
        name: str,
        known: Iterable[tuple[str, Annotations]],
        recipe: Recipe,
        left_out: Mapping[str, int],
        refused_texts: Mapping[str, int],
    ) -> None:
        """`known` gives each image's name and annotations, in order. The caller sets `files` afterwards."""
        self.name, self.recipe = name, recipe
        stored = [(image, json.dumps(annotations)) for image, annotations in known]
        self.left_out, self.refused_texts = dict(left_out), dict(refused_texts)
        check_some_left(name, len(stored), self.left_out)
        self.names_of_images = [image for image, _ in stored]
        self.known = Texts(text for _, text in stored)

    def annotations(self, index: int) -> Annotations:
        """The phrases and relations of an image."""
        return decode_json(self.known[index].encode(), self.name, Annotations)

    def every(self) -> Iterator[Annotations]:
        """The annotations of all images, in order."""
        return map(self.annotations, range(len(self)))

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        """A caption made from each image's annotations; the choice depends only on the image's name and its draw."""
        return [
            self.recipe(self.annotations(int(index)), generator(int(draw), "caption", self.names_of_images[index]))
            for index, draw in zip(indices, draws, strict=True)
        ]

    def texts_of(self, index: int) -> tuple[str, ...]:
        return self.annotations(index).phrases

    def texts(self) -> Iterator[str]:
        """Yield all phrases and predicates, and for each image a caption at least as long in words as any other."""
        yield from dict.fromkeys(
            text for its in self.every() for text in (*its.phrases, *(stated.predicate for stated in its.relations))
        )
        yield from (caption.text for its in self.every() for caption in longest_caption(self.recipe, its))

    def counts(self) -> dict[str, int]:
        """Numbers of images, phrases, relations, and "captions": relations if captions state any, else phrases."""
        sizes = [(len(its.phrases), len(its.relations)) for its in self.every()]
        phrases, relations = map(sum, zip(*sizes, strict=True))
        captions = phrases if self.recipe is two_regions else sum(stated or named for named, stated in sizes)
        return {"images": len(self), "captions": captions, "phrases": phrases, "relations": relations}

    def content(self) -> Iterator[str]:
        yield self.recipe.__name__
        yield from map(repr, self.every())


UNKNOWN_OBJECT = "a relation to an object that its image doesn't have"


class RefusalCounts(Counter[str]):
    """Counts the texts and relations that were refused, by reason."""

    def clean(self, text: Any) -> str:
        """Normalise a text's white space; a refused text is counted, and becomes empty."""
        text = " ".join(text.split())
        problem = refusal(text)
        if problem:
            self[problem] += 1
        return "" if problem else text

    def phrase(self, obj: FileRow, attributes: bool = True) -> str:
        """An object's name (of several the first) after its attributes, if they are wanted; empty without a name."""
        key = "names" if "names" in obj.content else "name"
        names = obj.field(key, str, list)
        called = names[:1] if isinstance(names, list) else [names]
        before = obj.content.get("attributes") or [] if attributes else []
        if not isinstance(before, list) or not all(isinstance(word, str) for word in (*before, *called)):
            raise obj.error(f"has a {key!r} or 'attributes' that are no list of texts")
        return self.clean(" ".join((*before, *called)) if "".join(called).strip() else "")

    def annotations(
        self, objects: Mapping[Hashable, str], related: Sequence[tuple[Hashable, str, Hashable]]
    ) -> Annotations:
        """The phrases of objects by their keys, and relations between two keys; leaves out objects without a text, and
        relations without a text or one of their objects."""
        if unknown := sum(not objects.keys() >= {a, b} for a, _, b in related):
            self[UNKNOWN_OBJECT] += unknown
        places = {key: place for place, key in enumerate(key for key, text in objects.items() if text)}
        stated = ((a, text, b) for a, text, b in related if text and a in places and b in places)
        phrases = tuple(filter(None, objects.values()))
        return Annotations(phrases, tuple(Relation(places[a], text, places[b]) for a, text, b in stated))
