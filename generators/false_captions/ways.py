"""Ways to make a caption false: parts of it exchanged or replaced, or words in another order.

Each yields drafts, and in place of a draft the reason why a part of the caption gives none.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from menagerie.generators.captions.graph import Edge
from menagerie.generators.false_captions.located import (
    WORD,
    LocatedCaption,
    Span,
    Statement,
    Thing,
    exchanged,
    find_phrase,
    plain_words,
    stem,
    value_of,
    with_changes,
)
from menagerie.generators.false_captions.seen import SeenWords
from menagerie.generators.false_captions.words import (
    FIXED,
    LIVING,
    NO_THINGS,
    OPPOSITES,
    OTHER_SEX,
    OWNERS,
    PART_OF_VALUE,
    PERSONS,
    POSTURES,
    SEXED,
    SHADES,
    SYMMETRIC,
    VALUES,
)

TRIED = 5  # words of the set that are tried in the place of one


class Draft(NamedTuple):
    """A text that may be false, and what it states."""

    text: str
    things: tuple[Thing, ...]
    edges: tuple[Edge, ...]
    new: str = ""
    """Words that no caption of the image may have."""


Drafts = Iterator[Draft | str]


def places(caption: LocatedCaption) -> Iterator[tuple[int, Thing]]:
    """Yield the things that stand in the text, with their numbers."""
    for k, thing in enumerate(caption.things):
        if thing.start >= 0 and thing.noun not in NO_THINGS:
            yield k, thing


def listed(caption: LocatedCaption, thing: Thing) -> list[tuple[Span, str]]:
    """A thing's listed values, with their places."""
    words = [(span, caption.text[slice(*span)].lower()) for span in thing.attributes]
    return [(span, word) for span, word in words if word in VALUES]


def part_of_more(caption: LocatedCaption, span: Span, several: bool) -> str:
    """Why a value can't be changed by itself; empty if it can. `several` says whether it may be one of several."""
    before, after = (
        WORD.findall(caption.text[: span[0]].lower())[-2:],
        WORD.findall(caption.text[span[1] :].lower())[:3],
    )
    if {*before[-1:]} & SHADES or {*after} & PART_OF_VALUE:
        return "it is a part of another value"
    beside = {*[word for word in before if word != "and"][-1:], *[word for word in after[:2] if word != "and"][:1]}
    same = {VALUES[word][0] for word in beside if word in VALUES}
    return "a thing of several values" if several and VALUES[caption.text[slice(*span)].lower()][0] in same else ""


def swap_attribute(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange the values that two things have of one property."""
    for (a, one), (b, other) in combinations(places(caption), 2):
        for (i, x), (j, y) in product(listed(caption, one), listed(caption, other)):
            (name, value), (its, another) = VALUES[x], VALUES[y]
            if name != its:
                yield "of two properties"
            elif value == another or {value_of(y)} & {*map(value_of, one.values)} or x in other.values:
                yield "both have the value"
            elif name == "colour" and PERSONS & {one.noun, other.noun}:
                yield "a person's colour"
            elif why := part_of_more(caption, i, True) or part_of_more(caption, j, True):
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
            name, value = VALUES[word]
            has = {*map(value_of, thing.values)}
            others = [x for x in seen.values(thing.head) if VALUES.get(x, ("",))[0] == name and VALUES[x] not in has]
            others = [x for x in others if name != "number" or VALUES[x][1] > value]
            if why := part_of_more(caption, span, False):
                yield why
            elif name == "colour" and thing.noun in PERSONS:
                yield "a person's colour"
            elif not others:
                yield "the captions give it no other value"
            else:
                for new in others[:TRIED]:
                    changed = thing._replace(values=thing.values - {word} | {new})
                    yield replaced(caption, a, changed, (*span, new))


def replaced(caption: LocatedCaption, number: int, thing: Thing, change: tuple[int, int, str]) -> Draft:
    """A draft in which one thing is another."""
    things = (*caption.things[:number], thing, *caption.things[number + 1 :])
    return Draft(with_changes(caption.text, [change]), things, caption.edges, change[2])


def replace_person(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Make a man a woman, a girl a boy and so on, where no pronoun tells."""
    for a, thing in places(caption):
        if thing.noun in OTHER_SEX:
            if {*plain_words(caption.text).split()} & SEXED:
                yield "a pronoun tells the sex"
            else:
                new = OTHER_SEX[thing.noun]
                yield replaced(caption, a, thing._replace(noun=new), (thing.noun_start, thing.end, new))


def replace_object(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Replace a noun by one of similar contexts that images seldom have beside it."""
    for a, thing in places(caption):
        others = [x for x in seen.similar(thing.noun) if thing.form in seen.forms[x] and x not in NO_THINGS]
        others = [x for x in others if not {x, thing.noun} & PERSONS]
        if not others:
            yield "no noun is like it"
        for new in others[:TRIED]:
            yield replaced(caption, a, thing._replace(noun=new), (thing.noun_start, thing.end, new))


def replace_relation(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Replace a predicate by its opposite, or a posture by another."""
    for edge in caption.edges:
        one, other = caption.things[edge.subject], caption.things[edge.object]
        located = one.start >= 0 and other.start >= 0 and other.noun not in NO_THINGS
        place = find_phrase(edge.predicate, caption.text, one.end, other.start) if located else None
        others = [*other_predicates(edge.predicate, one.noun, other.noun, seen)]
        if not place or caption.text[place[1] : other.article].strip():
            yield "the predicate isn't right between two things"
            continue
        if not others:
            yield "no other predicate is known"
        for new in others:
            edges = tuple(edge._replace(predicate=new) if its == edge else its for its in caption.edges)
            yield Draft(with_changes(caption.text, [(*place, new)]), caption.things, edges)


def other_predicates(predicate: str, subject: str, object_: str, seen: SeenWords) -> Iterator[str]:
    """Yield predicates that exclude one."""
    tail = max((tail for tail in OPPOSITES if f" {predicate}".endswith(f" {tail}")), key=len, default="")
    if tail:
        yield predicate.removesuffix(tail) + OPPOSITES[tail]
    first, _, rest = predicate.partition(" ")
    if any(role == "subject" and its.split()[0] in LIVING for role, its in seen.contexts[subject]):
        others = (verb for verbs in POSTURES for verb in verbs if first in verbs and verb != first)
        known = seen.contexts[object_]
        yield from (new for verb in others if ("object", new := f"{verb} {rest}".strip()) in known)


def swap_ends(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange the subject and the object of a relation."""
    finite = any(tag in ("VBZ", "VBP") for tag in caption.tags.values())
    for predicate, a, b in caption.edges:
        one, other = caption.things[a], caption.things[b]
        if is_symmetric(predicate):
            yield "a symmetric relation"
        elif predicate.split()[-1] in FIXED or {one.noun, other.noun} & NO_THINGS:
            yield "'of' or the like between them"
        elif one.start < 0 or other.start < 0 or one.end > other.article:
            yield "not in the text in this order"
        elif one.plural != other.plural and finite:
            yield "the verb has a number"
        elif {one.before, other.before} & OWNERS or "'" in one.before + other.before:
            yield "an owner before it"
        else:
            things = list(caption.things)
            things[a], things[b] = other, one
            text = exchanged(caption.text, (one.article, one.end), (other.article, other.end))
            yield Draft(text, tuple(things), caption.edges)


def shuffle_words(caption: LocatedCaption, seen: SeenWords) -> Drafts:
    """Exchange two nouns, adjectives, adverbs or verbs of one tag, much as NegCLIP does."""
    words = [(caption.tags.get(word.start(), ""), word.span()) for word in WORD.finditer(caption.text)]
    for (tag, one), (its, other) in combinations(words, 2):
        if tag == its and tag[:2] in ("NN", "JJ", "RB", "VB"):
            yield Draft(exchanged(caption.text, one, other), (), ())


def is_symmetric(predicate: str) -> bool:
    return predicate.split()[-1] in SYMMETRIC


def statements(things: tuple[Thing, ...], edges: tuple[Edge, ...]) -> set[Statement]:
    """What a graph says, for comparison: values of nouns, and relations, symmetric ones in one order."""
    said: set[Statement] = {("is", thing.head, value_of(word)) for thing in things for word in thing.values}
    for predicate, *ends in edges:
        nouns = [things[end].head for end in ends]
        said.add((predicate.split()[-1], *sorted(nouns)) if is_symmetric(predicate) else (predicate, *nouns))
    return said


def new_words(draft: Draft) -> set[object]:
    """The words that a draft has and no caption of its image may have."""
    return {value_of(word) if word in VALUES else stem(word) for word in draft.new.lower().split()}
