"""Ways to make a caption false: parts of it exchanged or replaced, or words in another order.

Each yields drafts, and in place of a draft the reason why a part of the caption gives none.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from menagerie.generators.captions.graph import Edge
from menagerie.generators.false_captions import located, words
from menagerie.generators.false_captions.located import WORD, LocatedCaption, Span, Thing, exchanged, with_changes
from menagerie.generators.false_captions.seen import SeenWords
from menagerie.generators.false_captions.words import NO_THINGS, PERSONS, VALUES

TRIED = 5  # values of the set that are tried in the place of one


class Draft(NamedTuple):
    """A text that may be false, and what it states."""

    text: str
    things: tuple[Thing, ...] = ()
    edges: tuple[Edge, ...] = ()
    new: str = ""
    """Words that no caption of the image may have."""


Drafts = Iterator[Draft | str]


def places(caption: LocatedCaption) -> Iterator[tuple[int, Thing]]:
    """Yield the things that stand in the text, with their numbers."""
    return ((k, one) for k, one in enumerate(caption.things) if one.start >= 0 and one.noun not in NO_THINGS)


def listed(caption: LocatedCaption, thing: Thing) -> list[tuple[Span, str]]:
    """A thing's listed values, with their places."""
    found = [(span, caption.text[slice(*span)].lower()) for span in thing.attributes]
    return [(span, word) for span, word in found if word in VALUES]


def kept_value(caption: LocatedCaption, thing: Thing, span: Span, exchange: bool) -> str:
    """Why a thing's value stays; empty if it needn't. One of several values ("red and white") isn't exchanged."""
    before, after = (WORD.findall(part.lower()) for part in (caption.text[: span[0]], caption.text[span[1] :]))
    name = VALUES[caption.text[slice(*span)].lower()][0]
    if {*before[-1:]} & words.SHADES or {*after[:3]} & words.PART_OF_VALUE:
        return "it is a part of another value"
    if name == "colour" and thing.noun in PERSONS:
        return "a person's colour"
    beside = [[word for word in side[:2] if word != "and"][:1] for side in (before[::-1], after)]
    several = name in {VALUES[word][0] for side in beside for word in side if word in VALUES}
    return "a thing of several values" if several and exchange else ""


def swap_attribute(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange the values that two things have of one property."""
    for (a, one), (b, other) in combinations(places(caption), 2):
        for (i, x), (j, y) in product(listed(caption, one), listed(caption, other)):
            if VALUES[x][0] != VALUES[y][0]:
                yield "of two properties"
            elif VALUES[y] in map(VALUES.get, one.values) or VALUES[x] in map(VALUES.get, other.values):
                yield "both have the value"
            elif why := kept_value(caption, one, i, True) or kept_value(caption, other, j, True):
                yield why
            else:
                things = list(caption.things)
                things[a] = one._replace(values=one.values - {x} | {y})
                things[b] = other._replace(values=other.values - {y} | {x})
                yield Draft(exchanged(caption.text, i, j), tuple(things), caption.edges)


def replace_attribute(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Replace a thing's value by another that captions give to such things; numbers by higher ones."""
    for a, thing in places(caption):
        for span, word in listed(caption, thing):
            (name, value), has = VALUES[word], {*map(VALUES.get, thing.values)}
            others = [
                x for x in seen.values(thing.head) if x in VALUES and VALUES[x][0] == name and VALUES[x] not in has
            ]
            others = [x for x in others if name != "number" or VALUES[x][1] > value]
            if why := kept_value(caption, thing, span, False) or "the captions give it no other value" * (not others):
                yield why
                continue
            for new in others[:TRIED]:
                yield replaced(caption, a, thing._replace(values=thing.values - {word} | {new}), (*span, new))


def replaced(caption: LocatedCaption, number: int, thing: Thing, change: tuple[int, int, str]) -> Draft:
    """A draft in which one thing is another."""
    things = (*caption.things[:number], thing, *caption.things[number + 1 :])
    return Draft(with_changes(caption.text, [change]), things, caption.edges, change[2])


def replace_person(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Make a man a woman, a girl a boy and so on, where no pronoun tells."""
    told = {*WORD.findall(caption.text.lower())} & words.SEXED
    for a, thing in places(caption):
        if new := words.OTHER_SEX.get(thing.noun):
            draft = replaced(caption, a, thing._replace(noun=new), (thing.noun_start, thing.end, new))
            yield "a pronoun tells the sex" if told else draft


def replace_object(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Replace a noun by one of similar contexts that images seldom have beside it."""
    for a, thing in places(caption):
        others = [x for x in seen.similar(thing.noun) if thing.form in seen.forms[x] and x not in NO_THINGS]
        others = [x for x in others if not {x, thing.noun} & PERSONS]
        for new in others:
            yield replaced(caption, a, thing._replace(noun=new), (thing.noun_start, thing.end, new))
        if not others:
            yield "no noun is like it"


def replace_predicate(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Replace a predicate by its opposite."""
    for edge in caption.edges:
        one, other = caption.things[edge.subject], caption.things[edge.object]
        ends = [end for end in words.OPPOSITES if f" {edge.predicate}".endswith(f" {end}")]
        there = one.start >= 0 and other.start >= 0 and other.noun not in NO_THINGS
        place = located.find_phrase(edge.predicate, caption.text, one.end, other.start) if there else None
        if not ends:
            yield "no opposite is known"
        elif not place or caption.text[place[1] : other.article].strip():
            yield "the predicate isn't right between two things"
        else:
            last = max(ends, key=len)
            new = edge.predicate.removesuffix(last) + words.OPPOSITES[last]
            edges = tuple(edge._replace(predicate=new) if its == edge else its for its in caption.edges)
            yield Draft(with_changes(caption.text, [(*place, new)]), caption.things, edges)


def swap_ends(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange the subject and the object of a relation."""
    finite = any(tag in ("VBZ", "VBP") for tag in caption.tags.values())
    for predicate, a, b in caption.edges:
        one, other, last = caption.things[a], caption.things[b], predicate.split()[-1]
        if last in words.SYMMETRIC | words.FIXED or {one.noun, other.noun} & NO_THINGS:
            yield "a symmetric relation, or 'of' or the like"
        elif one.start < 0 or other.start < 0 or one.end > other.article:
            yield "not in the text in this order"
        elif one.plural != other.plural and finite:
            yield "the verb has a number"
        elif {one.before, other.before} & words.OWNERS or "'" in one.before + other.before:
            yield "an owner before it"
        else:
            things = tuple({a: other, b: one}.get(k, thing) for k, thing in enumerate(caption.things))
            spans = (one.article, one.end), (other.article, other.end)
            yield Draft(exchanged(caption.text, *spans), things, caption.edges)


def shuffle_words(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange two nouns, adjectives, adverbs or verbs of one tag, much as NegCLIP does."""
    tagged = [(caption.tags.get(word.start(), ""), word.span()) for word in WORD.finditer(caption.text)]
    for (tag, one), (its, other) in combinations(tagged, 2):
        if tag == its and tag[:2] in ("NN", "JJ", "RB", "VB"):
            yield Draft(exchanged(caption.text, one, other))
