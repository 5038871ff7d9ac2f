"""Parses a synthetic caption into its scene graph, given the vocabulary of its world.

It shares only plurals and the words for numbers, relations and conjunctions with `menagerie.generators.captions`, which
writes captions. So tests and the audit can check one against the other. The grammar, in any phrasing:

- an object is named, "a TEXTURE ANIMAL", "NUMBER TEXTURE ANIMALS" or "no TEXTURE ANIMAL", where the texture is
  optional; or it is stated, "the ANIMAL is TEXTURE", "NUMBER ANIMALS are TEXTURE" or "no ANIMAL is TEXTURE", with
  "there" if it has no texture. The article is "a" or "the", the same for all; in worlds with sizes a SIZE stands before
  texture and animal;
- two objects are joined by a conjunction, or by a predicate, which is an edge of the graph and may have "is" or, in a
  chain of several, "that is" before it;
- the text before the first object and after the last names exactly one background.

Only `check_phrasings` makes captions: it checks whether a phrasing's captions can be parsed back.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import NUMBERS, plural
from menagerie.generators.captions.relations import chain, converses
from menagerie.generators.captions.templates import CONJUNCTIONS, Content, Template, write_caption
from menagerie.generators.vocabulary import Vocabulary


class Reading(NamedTuple):
    """A caption's graph, and the words that the graph leaves out."""

    graph: SceneGraph
    article: str
    """Article of the objects, "a" or "the"; "" if all are counted or negated."""
    joints: tuple[str, ...]
    """Words between each object and the next."""


def pattern_of_any(names: Iterable[str]) -> str:
    """Return a pattern that matches any of `names`, longer ones first."""
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"


@cache
def patterns(words: Vocabulary | World) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of an object, of a background, and of an animal or a texture by itself."""
    backgrounds, textures = pattern_of_any(words.backgrounds), pattern_of_any(words.textures)
    start = rf"(?:(?P<no>no)|(?P<number>{pattern_of_any(NUMBERS)})|(?P<article>an?|the(?! {backgrounds}\b)))"
    size = f" (?P<size>{pattern_of_any(words.sizes)})" if words.sizes else "(?P<size>)"
    animal = f" (?P<animal>(?(number){pattern_of_any(map(plural, words.animals))}|{pattern_of_any(words.animals)}))"
    state = f"(?(texture)|(?: (?(number)are|is) (?P<state>{textures}|there))?)"
    obj = rf"\b{start}{size}(?: (?P<texture>{textures}))?{animal}{state}\b"
    return (
        re.compile(obj),
        re.compile(rf"\b{backgrounds}\b"),
        re.compile(rf"\b(?:{pattern_of_any(words.animals)}|{textures})\b"),
    )


def phrase_of(obj: re.Match[str]) -> str:
    """Return the phrase of an object that is named or stated: "small red cat", "two red cats", "no red cat"."""
    texture = obj["texture"] or (obj["state"] if obj["state"] != "there" else "")
    return " ".join(filter(None, (obj["no"], obj["number"], obj["size"], texture, obj["animal"])))


def caption_reading(text: str, words: Vocabulary | World) -> Reading | None:
    """Parse a caption of our worlds. The nodes of its graph are its objects in order of mention, then the background.

    None if the text doesn't follow the grammar: no object, not exactly one background, an animal or a texture outside
    of an object, "is" or "are" after the last object, both articles, or two objects joined by other words."""
    obj, background, name = patterns(words)
    objects = list(obj.finditer(text))
    if not objects:
        return None
    joints = [text[one.end() : other.start()].strip() for one, other in pairwise(objects)]
    rest = f"{text[: objects[0].start()]}|{text[objects[-1].end() :]}"
    places = background.findall(rest)
    goes_on = text[objects[-1].end() :].startswith((" is ", " are "))
    articles = {"a" if one["article"] == "an" else one["article"] for one in objects if one["article"]}
    if goes_on or len(places) != 1 or len(articles) > 1 or name.search(background.sub("", rest)):
        return None
    predicates = {joint: name for name in converses() for joint in (name, f"is {name}", f"that is {name}")}
    if not predicates.keys() | set(CONJUNCTIONS) >= set(joints):
        return None
    edges = tuple(Edge(predicates[joint], i, i + 1) for i, joint in enumerate(joints) if joint in predicates)
    graph = SceneGraph((*map(phrase_of, objects), places[0]), edges)
    return Reading(graph, min(articles, default=""), tuple(joints))


def parse_caption(text: str, words: Vocabulary | World) -> SceneGraph | None:
    """The scene graph of a caption; None if the text doesn't follow the grammar."""
    reading = caption_reading(text, words)
    return reading and reading.graph


@lru_cache(maxsize=64)
def check_phrasings(template: Template, world: World) -> None:
    """Raise for a phrasing whose captions can't be parsed back, such as one with a name of the world: its captions
    would mention objects that their scenes don't show."""
    size = world.sizes[0] if world.sizes else ""
    textures = (world.textures * 2)[:2]  # a world of objects in their own colours has only one
    names = tuple(zip(world.animals[:2], textures, strict=True))
    places = [its.slots for its in RELATIONS.values()]
    for (number, text), background, slots in product(enumerate(template.phrasings), world.backgrounds, places):
        objects = tuple(Object(*name, slot, size) for name, slot in zip(names, slots, strict=True))
        content = Content(Scene(background, objects), objects, chain(slots, template.relations), phrasing=number)
        made = write_caption(content, template)
        if parse_caption(made.text, world) != made.graph:
            raise UserError(
                f"the phrasing {text!r} gives {made.text!r}, which can't be parsed back: use no name of the "
                f"world {world.name!r} besides the objects and the place, and no 'is' or 'are' after the objects"
            )
