"""False captions made from true ones, by rules over their scene graphs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import generator
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.false_captions import ways as made_by
from menagerie.generators.false_captions.located import LocatedCaption, Thing, locate_graph, plain_words, words_said
from menagerie.generators.false_captions.record import FalseCaption
from menagerie.generators.false_captions.seen import SeenWords
from menagerie.generators.false_captions.ways import Draft, Drafts
from menagerie.generators.false_captions.words import SYMMETRIC, VALUES
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.parsers.spacy_rules import Tagger, spacy_tags
from menagerie.generators.sources.texts import graphs_of

MOST = 3  # false captions of a caption in one way


class Way(NamedTuple):
    """A way to make false captions."""

    kind: str
    """What losses ask for: "swap", "replace" or "shuffle"."""
    default: bool
    wrong: float
    """Share that is true in fact, ungrammatical or unclear, of 40 that one reader read (docs/real-data.md)."""
    about: str
    drafts: Callable[[LocatedCaption, SeenWords], Drafts]


WAYS: Mapping[str, Way] = {
    "swap attribute": Way("swap", True, 0.0, "values of one property exchanged", made_by.swap_attribute),
    "replace attribute": Way("replace", True, 0.0, "a value replaced by another", made_by.replace_attribute),
    "swap subject and object": Way("swap", False, 0.175, "the ends of a relation exchanged", made_by.swap_ends),
    "replace person": Way("replace", False, 0.0, "man and woman, boy and girl", made_by.replace_person),
    "replace object": Way("replace", False, 0.125, "a noun replaced by one like it", made_by.replace_object),
    "replace relation": Way("replace", False, 0.05, "a predicate replaced by its opposite", made_by.replace_predicate),
    "shuffle": Way("shuffle", False, 0.45, "two words of one part of speech exchanged", made_by.shuffle_words),
}
DEFAULTS = tuple(name for name, way in WAYS.items() if way.default)


class Made(NamedTuple):
    """False captions, and what gave none."""

    captions: list[FalseCaption]
    refused: Counter[tuple[str, str]]
    """Number of changes that were refused, by way and reason; a caption with nothing to change counts as one."""
    considered: int
    """Number of captions."""


def make_false_captions(
    images: Iterable[tuple[str, Sequence[str]]],
    ways: Sequence[str] = DEFAULTS,
    parse: Callable[[str], SceneGraph] | None = None,
    seed: int = 0,
    tag: Tagger = spacy_tags,
) -> Made:
    """Make up to `MOST` false captions of each caption in each way, drawn by the seed, the image and the caption.

    `images` are names and all true captions, among which words to put in are sought; in another order they give the
    same. `parse` is by default the parser spacy-rules. Raises `UserError` for an unknown way, and where spaCy is needed
    and not installed.
    """
    chosen = choose_ways(ways)
    captions = locate_captions(images, parse, None if all(way.default for way in chosen.values()) else tag)
    seen, by_image = SeenWords(captions), dict[str, list[LocatedCaption]]()
    for caption in captions:
        by_image.setdefault(caption.image, []).append(caption)
    found, refused = list[FalseCaption](), Counter[tuple[str, str]]()
    for name, way in chosen.items():
        for caption in captions:
            others = [other for other in by_image[caption.image] if other.text != caption.text]
            kept = dict[str, None]()
            for draft in list(way.drafts(caption, seen)) or [caption.lack or "nothing to change"]:
                if reason := draft if isinstance(draft, str) else objection(draft, caption, others):
                    refused[name, reason] += 1
                else:
                    kept[draft.text] = None
            order = generator(seed, "false caption", name, caption.image, caption.text).permutation(len(kept))
            texts = [sorted(kept)[k] for k in order[:MOST]]
            found += [FalseCaption(caption.image, caption.text, way.kind, name, text) for text in texts]
    return Made(found, refused, len(captions))


def choose_ways(names: Iterable[str]) -> dict[str, Way]:
    """The ways of these names; raises for an unknown one."""
    return {name: WAYS[choose("way", name, WAYS)] for name in names}


def locate_captions(
    images: Iterable[tuple[str, Sequence[str]]],
    parse: Callable[[str], SceneGraph] | None,
    tag: Tagger | None,
) -> list[LocatedCaption]:
    """Parse captions and tag their words; without a tagger, which values don't need, parse only those with values."""
    pairs = [(image, text) for image, texts in images for text in dict.fromkeys(texts)]
    wanted = list(dict.fromkeys(text for _, text in pairs if tag or VALUES.keys() & {*plain_words(text).split()}))
    graphs = dict(zip(wanted, graphs_of(wanted, parse or open_parser("spacy-rules")), strict=True)) if wanted else {}
    return [locate_graph(image, text, graphs.get(text), tag) for image, text in pairs]


def objection(draft: Draft, caption: LocatedCaption, others: Sequence[LocatedCaption]) -> str:
    """Why a draft may be true of the image; empty if nothing says so."""
    if plain_words(draft.text) in {plain_words(one.text) for one in (caption, *others)}:
        return "a caption of the image says the same"
    if draft.new and words_said(draft.new) & {word for one in (caption, *others) for word in words_said(one.text)}:
        return "a caption of the image has the word"
    new = graph_statements(draft.things, draft.edges) - graph_statements(caption.things, caption.edges)
    if not new and not draft.new and draft.things:
        return "the same meaning"
    if any(new & graph_statements(other.things, other.edges) for other in others):
        return "another caption states a part of it"
    return ""


def graph_statements(things: Sequence[Thing], edges: Iterable[Edge]) -> set[tuple]:
    """What a graph says, for comparison: values of nouns, and relations, symmetric ones in one order."""
    said = {("is", thing.head, VALUES.get(word, word)) for thing in things for word in thing.values}
    for predicate, *ends in edges:
        nouns, last = [things[end].head for end in ends], predicate.split()[-1]
        said.add((last, *sorted(nouns)) if last in SYMMETRIC else (predicate, *nouns))
    return said
