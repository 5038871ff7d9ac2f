"""From a caption back to its scene graph, by the words of its world: a witness of `generators.captions.templates`.

Whatever stands around them, a caption's things are all that reads "a TEXTURE ANIMAL", "an ANIMAL" or
"two TEXTURE ANIMALS" or "no TEXTURE ANIMAL", in a world with sizes "a SIZE TEXTURE ANIMAL" and so on; its edges are
the predicates between them, and its background is the one that the rest names.
"""

import re
from collections.abc import Iterable
from functools import cache

from envs.world import World
from generators.captions.graph import Edge, SceneGraph
from generators.captions.phrases import NUMBERS, plural
from generators.captions.relations import CONVERSES
from generators.vocabulary import Vocabulary


def one_of(names: Iterable[str]) -> str:
    """A pattern of any of `names`, longer ones first."""
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"


@cache
def patterns(words: Vocabulary | World) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Of a thing or of several that are alike, and of a background."""
    told = f"{f'{one_of(words.sizes)} ' if words.sizes else ''}(?:{one_of(words.textures)} )?"
    one, many = f"{told}{one_of(words.animals)}", f"{told}{one_of(map(plural, words.animals))}"
    bare = rf"(?:no {one}|{one_of(NUMBERS)} {many})"
    thing = rf"\b(?:an? (?={one}\b)|(?={bare}\b))({bare}|{one})\b"
    return re.compile(thing), re.compile(rf"\b{one_of(words.backgrounds)}\b")


def parse(text: str, words: Vocabulary | World) -> SceneGraph | None:
    """The scene graph of a caption, its things in the order of their mention and the background last.

    None for a text that is no caption: no thing, not one background, a thing told otherwise, or two of them
    joined by anything but "and" or a predicate.
    """
    thing, background = patterns(words)
    around = thing.split(text)  # what stands before the first thing, the thing, what stands behind it, the next one
    phrases, links = around[1::2], [link.strip() for link in around[2:-1:2]]
    rest = f"{around[0]}|{around[-1]}"
    places = background.findall(rest)
    unread = re.search(rf"\b{one_of(words.animals)}\b", background.sub("", rest))
    if not phrases or len(places) != 1 or unread or not {"and", *CONVERSES}.issuperset(links):
        return None
    edges = tuple(Edge(link, i, i + 1) for i, link in enumerate(links) if link != "and")
    return SceneGraph((*phrases, places[0]), edges)
