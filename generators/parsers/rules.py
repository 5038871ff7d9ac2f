"""Parsers without a model: `rules`, which knows the grammar of our captions, and `one-node`, which parses nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from menagerie.envs import catalog
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.slots import PAIR_SLOTS, SIZES
from menagerie.envs.world import TEXTURES, World
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import NUMBERS, plain_text, plural, suggest_nearest
from menagerie.generators.captions.relations import converses
from menagerie.generators.captions.templates import CONJUNCTIONS, IN_PLACE, TEMPLATES
from menagerie.generators.parsers.parser import Parsed, Parser
from menagerie.generators.parsers.registry import NoOptions, ParserSpec
from menagerie.generators.parsers.world_grammar import parse_caption as parse_in_world
from menagerie.generators.vocabulary import Vocabulary

VERSION = 3  # of the grammar in generators/parsers/world_grammar.py, and of the names that it knows
# Takes the place of a background that a caption doesn't name; no caption has this word.
NOWHERE = "nowhere-at-all"
EXAMPLE = "write it like 'a red cat and a white lion in the desert', or give the graph yourself"


def parse(caption: str, world: str | World | Vocabulary = "") -> SceneGraph:
    """Parse a caption of our worlds. The nodes of its graph are its objects in order of mention, then the background.

    Capitals and punctuation don't matter, and the background may be missing.

    Args:
        caption: The caption.
        world: A name, a TOML file or a vocabulary; without it, `all_names` are known.

    Raises:
        UserError: For a caption that doesn't follow the grammar (`menagerie.generators.parsers.world_grammar`), and for
            a word that no caption of the world has; the message suggests the nearest word.
    """
    words, text = vocabulary_of(world), plain_text(caption)
    if not text:
        raise UserError(f"an empty caption has no scene graph; {EXAMPLE}")
    check_words(caption, words)  # the grammar skips unknown words, but here they may be meant as objects
    known = with_optional_sizes(words)
    if graph := parse_in_world(text, known) or without_background(text, known):
        return graph
    raise UserError(f"no scene graph of {caption!r}: it doesn't follow the grammar of our captions; {EXAMPLE}")


def vocabulary_of(world: str | World | Vocabulary) -> World | Vocabulary:
    """The names of a world; for "", those of `all_names`."""
    if not isinstance(world, str):
        return world
    return load_world(world) if world else all_names()


def all_names() -> Vocabulary:
    """Return all built-in animals, backgrounds and sizes, and the textures of pug. The identity of the parser `rules`
    depends on these words, so further textures are known only if their world is given."""
    animals, backgrounds = map(catalog.names, ("animals", "backgrounds"))
    return Vocabulary(animals, tuple(sorted(TEXTURES)), backgrounds, PAIR_SLOTS, tuple(SIZES))


def with_optional_sizes(words: World | Vocabulary) -> World | Vocabulary:
    """Return a vocabulary that treats sizes like textures, so that a caption may give sizes to only some objects."""
    both = (f"{size} {texture}" for size in words.sizes for texture in words.textures)
    return replace(words, sizes=(), textures=(*words.textures, *words.sizes, *both))


def without_background(text: str, words: World | Vocabulary) -> SceneGraph | None:
    """The graph of a caption that names no background; None if the text doesn't follow the grammar."""
    graph = parse_in_world(f"{text} in the {NOWHERE}", replace(words, backgrounds=(*words.backgrounds, NOWHERE)))
    return graph and graph._replace(nodes=tuple(node for node in graph.nodes if node != NOWHERE))


@cache
def words_of_captions(words: World | Vocabulary) -> tuple[str, ...]:
    """All words that can occur in captions of a vocabulary."""
    names = [*words.animals, *map(plural, words.animals), *words.textures, *words.backgrounds, *words.sizes]
    phrasings = [p.format(objects="", place="", background="") for t in TEMPLATES.values() for p in t.phrasings]
    links = ["a an the no in is are there that", *CONJUNCTIONS, *NUMBERS, *converses(), *IN_PLACE.values(), *phrasings]
    return tuple(sorted({word for text in (*names, *links) for word in text.split()}))


def check_words(caption: str, words: World | Vocabulary) -> None:
    """Raise for a word that no caption of the vocabulary has, and suggest the nearest."""
    known = words_of_captions(words)
    for word in plain_text(caption).split():
        if word not in known:
            raise UserError(
                f"no scene graph of {caption!r}: unknown word {word!r}{suggest_nearest(word, known) or f'; {EXAMPLE}'}"
            )


@dataclass(frozen=True)
class RulesOptions:
    """The options of `rules`."""

    world: str = ""
    """World that gives the names: name or TOML file; empty: of the data, else built-in ones."""


class GrammarRules(Parser):
    """Makes graphs by the rules of `menagerie.generators.parsers.world_grammar`."""

    def __init__(self, options: RulesOptions) -> None:
        """Load the names of the world; raises `UserError` if there is no such world."""
        self.words = Vocabulary.of(vocabulary_of(options.world)) if options.world else vocabulary_of("")
        self.named = bool(options.world)

    def learn_names(self, words: Vocabulary) -> None:
        """Parse captions with the names of the data, unless an option names a world."""
        if not self.named:
            self.words = words

    def identity(self) -> Mapping[str, Any]:
        """The version of the rules, and the known names."""
        return {"parser": "rules", "version": VERSION, "words": digest(asdict(self.words))}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """Parse captions in order. Parsing fails for a caption with an unknown word, or outside the grammar."""
        for caption in captions:
            try:
                yield Parsed(caption, parse(caption, self.words))
            except UserError as error:
                yield Parsed(caption, None, f"not of our worlds: {error}")


PARSER = ParserSpec(
    "rules", "the grammar of our worlds' captions, and nothing of their scenes", GrammarRules, RulesOptions, kept=False
)


class OneNode(Parser):
    """Makes a single node of each caption."""

    def identity(self) -> Mapping[str, str]:
        return {"parser": "one-node"}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        return (Parsed(caption, None, "left whole") for caption in captions)


PARSER_ONE_NODE = ParserSpec("one-node", "leaves each caption whole", lambda options: OneNode(), NoOptions, kept=False)
