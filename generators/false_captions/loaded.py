"""False captions that are made anew whenever a caption is drawn, from its words alone, as FSC-CLIP (Oh et al. 2024),
READ-CLIP (Kwon et al. 2025) and LABCLIP (Koishigarina et al. 2025) make theirs.

Nobody checks whether they are false of the image, and many aren't English. What published code does otherwise: FSC-CLIP
and READ-CLIP also exchange phrases of nouns and of verbs (NegCLIP's exchange), for which a parser is needed; a mark at
the end of a text stays there.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from menagerie.generators.benchmarks.word_order import nouns_and_adjectives
from menagerie.generators.false_captions.located import WORD, LocatedCaption, tags_by_place
from menagerie.generators.false_captions.seen import SeenWords
from menagerie.generators.false_captions.ways import shuffle_words
from menagerie.generators.parsers.spacy_rules import Tagger

TRIED = 10  # orders that are drawn until one differs from the caption
MARKS = ".!?"

Make = Callable[[str, Tagger, np.random.Generator], str]


class LoadedWay(NamedTuple):
    """A way to make a false caption while loading."""

    kind: str
    """What losses ask for: "swap", "replace" or "shuffle"."""
    about: str
    make: Make
    """Makes one of a caption, or returns the caption's own words."""


def exchange_words(text: str, tag: Tagger, random: np.random.Generator) -> str:
    """Exchange two words of one part of speech."""
    caption = LocatedCaption("", text, tags_by_place(text, tag), (), ())
    found = [draft.text for draft in shuffle_words(caption, SeenWords(())) if not isinstance(draft, str)]
    return found[int(random.integers(len(found)))] if found else text


def shuffle_pairs(text: str, tag: Tagger, random: np.random.Generator) -> str:
    """Put pairs of neighbouring words into another order."""
    words = text.rstrip(MARKS).split()
    pairs = [" ".join(words[k : k + 2]) for k in range(0, len(words), 2)]
    return " ".join(pairs[k] for k in random.permutation(len(pairs))) + text[len(text.rstrip(MARKS)) :]


def reorder_words(text: str, tag: Tagger, random: np.random.Generator) -> str:
    """Put nouns into another order, and adjectives."""
    words, tags = list(WORD.finditer(text)), tags_by_place(text, tag)
    drawn = nouns_and_adjectives([(word[0], tags.get(word.start(), "")) for word in words], random)
    made, last = "", 0
    for word, new in zip(words, drawn, strict=True):
        made, last = made + text[last : word.start()] + new, word.end()
    return made + text[last:]


LOADED: Mapping[str, LoadedWay] = {
    "exchange words": LoadedWay("swap", "two words of one part of speech exchanged", exchange_words),
    "shuffle pairs": LoadedWay("shuffle", "pairs of neighbouring words in another order", shuffle_pairs),
    "reorder words": LoadedWay("swap", "nouns and adjectives in another order", reorder_words),
}


def make_loaded(name: str, text: str, tag: Tagger, random: np.random.Generator) -> str:
    """Make a false caption in a way of `LOADED`; empty if no drawn one differs from the caption."""
    drawn = (LOADED[name].make(text, tag, random) for _ in range(TRIED))
    return next((made for made in drawn if made != text), "")
