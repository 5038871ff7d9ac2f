"""Captions with the nodes of their scene graphs found in the text, and changes of texts."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.false_captions.words import ARTICLES, NO_ATTRIBUTES, VALUES
from menagerie.generators.parsers.spacy_rules import Tagger

WORD = re.compile(r"\w[\w'-]*")
VOWEL = re.compile(r"(?!uni|use|one|eu|ewe)[aeiou]|hour", re.IGNORECASE)
Span = tuple[int, int]
Form = tuple[bool, str]


class Thing(NamedTuple):
    """A node of a graph, and its place in the caption; the start is -1 if the caption doesn't have its words."""

    noun: str
    """The words behind the attributes, in lower case: "fire hydrant"."""
    values: frozenset[str] = frozenset()
    """Its attributes: listed values of properties and, if tags are known, other adjectives."""
    start: int = -1
    noun_start: int = -1
    end: int = -1
    attributes: tuple[Span, ...] = ()
    article: int = -1
    """Place of its article; `start` if it has none."""
    before: str = ""
    """The word before it."""
    plural: bool = False

    @property
    def form(self) -> Form:
        """Whether it is plural, and "a", "the" or nothing as its article: "a bed", but "hay"."""
        return self.plural, {"a": "a", "an": "a", "the": "the"}.get(self.before, "")

    @property
    def head(self) -> str:
        """The last word of the noun, without letters of plurals."""
        return stem(self.noun.split()[-1])


class LocatedCaption(NamedTuple):
    """A caption of an image, with its graph."""

    image: str
    text: str
    tags: Mapping[int, str]
    """Parts of speech by the places of words; empty if they are unknown."""
    things: tuple[Thing, ...]
    edges: tuple[Edge, ...]
    lack: str = ""
    """Why it has no things; empty if it has."""


def locate_graph(image: str, text: str, graph: SceneGraph | None, tag: Tagger | None) -> LocatedCaption:
    """Find the nodes of a graph in its caption, one after another. A graph that is the whole text is none; None stands
    for a caption without a listed value."""
    tags = tags_by_place(text, tag) if tag else {}
    if graph is None or graph.nodes == (text,):
        return LocatedCaption(image, text, tags, (), (), "no scene graph" if graph else "no listed value")
    things, last = list[Thing](), 0
    for phrase in graph.nodes:
        place = find_phrase(phrase, text, last) or find_phrase(phrase, text)
        last = place[1] if place else last
        things.append(locate_thing(text, place, tags) if place and WORD.search(text, *place) else Thing(phrase))
    return LocatedCaption(image, text, tags, tuple(things), graph.edges)


def find_phrase(phrase: str, text: str, start: int = 0, end: int | None = None) -> Span | None:
    """The place of words in a text, whatever stands between them but letters."""
    words = r"\W+".join(map(re.escape, phrase.split()))
    pattern = re.compile(rf"\b{words}\b", re.IGNORECASE)
    found = pattern.search(text, start, len(text) if end is None else end)
    return found and found.span()


def locate_thing(text: str, place: Span, tags: Mapping[int, str]) -> Thing:
    """Tell a phrase's attributes from its noun."""
    start, end = place
    words = list(WORD.finditer(text, start, end))
    found = [word.span() for word in words[:-1] if is_attribute(word[0].lower(), tags.get(word.start(), ""))]
    noun = next(word.start() for word in words if word.start() >= max((last for _, last in found), default=start))
    before = re.search(r"([\w']+)\s+$", text[:start])
    word = before[1].lower() if before else ""
    article = before.start() if before and word in ARTICLES else start
    plural = tags.get(words[-1].start()) in ("NNS", "NNPS")
    values = frozenset(text[i:j].lower() for i, j in found)
    return Thing(text[noun:end].lower(), values, start, noun, end, tuple(found), article, word, plural)


def is_attribute(word: str, tag: str) -> bool:
    return word in VALUES or (tag in ("JJ", "VBN") and word not in NO_ATTRIBUTES)


def tags_by_place(text: str, tag: Tagger) -> dict[int, str]:
    """The tags of a text's words, by their places."""
    found, last = dict[int, str](), 0
    for word, its in tag(text):
        place = text.find(word, last)
        if place >= 0:
            found[place], last = its, place + len(word)
    return found


def plain_words(text: str) -> str:
    """The words alone, in lower case; two texts with the same ones count as one."""
    return " ".join(WORD.findall(text.lower()))


def stem(word: str) -> str:
    """A word without the letters of plurals: "dresses" and "dress" are one."""
    return word.rstrip("es") or word


def words_said(text: str) -> set[object]:
    """The words of a text without plurals, and the listed values that it names."""
    words = plain_words(text).split()
    return {*map(stem, words), *(VALUES[word] for word in words if word in VALUES)}


def with_changes(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """The text with some parts written anew; "a" or "an" right before them and the first letter follow."""
    made, last = "", 0
    for start, end, new in sorted(changes):
        made += text[last:start]
        made = re.sub(r"\b(a)n?(\s+)$", rf"\g<1>{'n' if VOWEL.match(new) else ''}\2", made, flags=re.IGNORECASE)
        made += new if start or not text[0].isupper() else new[0].upper() + new[1:]
        last = end
    made += text[last:]
    return made.upper() if text.isupper() else made


def exchanged(text: str, one: Span, other: Span) -> str:
    """The text with two parts exchanged."""
    first, second = (text[i:j] if i else text[0].lower() + text[1:j] for i, j in (one, other))
    return with_changes(text, [(*one, second), (*other, first)])
