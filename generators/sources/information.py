"""How much an object in captions tells about its attributes: their normalised mutual information over all mentions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.contents import phrases
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import plain_phrase
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.sources.captions_file import captions_in_file, parse_all
from menagerie.generators.splits.dependence import entropy
from menagerie.generators.storage.split_file import read_split

# Words that begin a description after its noun: "woman in red", "cup of coffee".
BEHIND = ("in", "of", "with", "on", "at", "from", "for")
Mention = tuple[str, str]  # an object and one of its attributes


class Information(NamedTuple):
    """The information in a file's captions, and the numbers of what was counted."""

    information: float
    """Twice the mutual information, divided by the sum of both entropies: 0 to 1, scikit-learn's default."""
    mentions: int
    objects: int
    attributes: int
    pairs: int
    """Different pairs of an object and an attribute."""
    fell_back: int
    """Number of captions without a graph, whose mentions aren't counted."""


def information_of(mentions: Iterable[Mention], fell_back: int = 0) -> Information:
    """Compute the information from mentions of objects with attributes; raises `UserError` if there are none."""
    pairs = Counter(mentions)
    if not pairs:
        raise UserError("no caption names an object with an attribute; take another file or another --parser")
    objects, attributes = Counter(), Counter()
    for (noun, attribute), number in pairs.items():
        objects[noun] += number
        attributes[attribute] += number
    one, other, both = (
        entropy(np.array([*counts.values()]) / counts.total()) for counts in (objects, attributes, pairs)
    )
    information = max(2 * (one + other - both) / (one + other), 0.0) if one + other else 0.0
    return Information(information, pairs.total(), len(objects), len(attributes), len(pairs), fell_back)


def information_of_captions(path: Path, parser: CaptionParser) -> Information:
    """The information of captions, one a line or of a COCO file, as a parser reads them."""
    texts = captions_in_file(path)
    parse_all(parser, texts)
    graphs = (parser.graph(text) for text in texts if not parser.fell_back(text))
    return information_of(mentions_in(graphs), sum(map(parser.fell_back, texts)))


def information_of_split(path: Path) -> Information:
    """The information of animals and textures in the training captions of a split file."""
    split = read_split(path)
    known = dict(phrases(split.vocabulary))
    objects = (known.get(node) for graph in split.subsets["train"].graphs for node in graph.nodes)
    return information_of((obj.animal, obj.texture) for obj in objects if obj and obj.texture)


def mentions_in(graphs: Iterable[SceneGraph]) -> Iterator[Mention]:
    """Yield each object with each of its attributes: "small brown cat" gives (cat, small) and (cat, brown)."""
    for graph in graphs:
        for node in graph.nodes:
            noun, *described = split_phrase(node)
            yield from ((noun, attribute) for attribute in described)


def split_phrase(phrase: str) -> Iterator[str]:
    """Split a phrase: "small brown cat" -> "cat", "small", "brown"; "woman in red" -> "woman", "in red"."""
    words = plain_phrase(phrase).split()
    end = next((k for k, word in enumerate(words) if k and word in BEHIND), len(words))
    yield words[end - 1] if words else ""
    yield from words[: end - 1]
    if words[end:]:
        yield " ".join(words[end:])
