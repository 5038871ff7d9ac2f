"""Parses a synthetic caption into its scene graph, given the vocabulary of its world.

It shares only the words for numbers and relations with `generators.captions.templates`, which writes captions, so that
tests and the audit check one against the other. The grammar, in any phrasing:

- a thing is "a TEXTURE ANIMAL", "NUMBER TEXTURE ANIMALS" or "no TEXTURE ANIMAL"; the texture is optional, and in
  worlds with sizes a SIZE stands before it;
- two things are joined by "and", or by a predicate, which is an edge of the graph;
- the text before the first thing and after the last names exactly one background.
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
    """A pattern that matches any of `names`, longer ones first."""
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"


@cache
def patterns(words: Vocabulary | World) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns of a thing (in its one group) and of a background."""
    adjectives = f"{f'{one_of(words.sizes)} ' if words.sizes else ''}(?:{one_of(words.textures)} )?"
    one, many = f"{adjectives}{one_of(words.animals)}", f"{adjectives}{one_of(map(plural, words.animals))}"
    bare = rf"(?:no {one}|{one_of(NUMBERS)} {many})"
    thing = rf"\b(?:an? (?={one}\b)|(?={bare}\b))({bare}|{one})\b"
    return re.compile(thing), re.compile(rf"\b{one_of(words.backgrounds)}\b")


def parse(text: str, words: Vocabulary | World) -> SceneGraph | None:
    """The scene graph of a caption: nodes are its things in order of mention, then the background.

    None if the text doesn't follow the grammar: no thing, not exactly one background, an animal outside of a thing's
    phrase, or two things joined by other words.
    """
    thing, background = patterns(words)
    around = thing.split(text)  # text before the first thing, the thing, text between, the next thing, ..., text after
    phrases, links = around[1::2], [link.strip() for link in around[2:-1:2]]
    rest = f"{around[0]}|{around[-1]}"
    places = background.findall(rest)
    stray = re.search(rf"\b{one_of(words.animals)}\b", background.sub("", rest))
    if not phrases or len(places) != 1 or stray or not {"and", *CONVERSES}.issuperset(links):
        return None
    edges = tuple(Edge(link, i, i + 1) for i, link in enumerate(links) if link != "and")
    return SceneGraph((*phrases, places[0]), edges)
