"""Parsers without a model: `rules`, which knows the grammar of our captions, and `one-node`, which parses nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.generators.parsers.any_caption import parse, vocabulary_of
from menagerie.generators.parsers.parser import Parsed, Parser
from menagerie.generators.parsers.registry import NoOptions, ParserSpec
from menagerie.generators.vocabulary import Vocabulary

VERSION = 2  # of the grammar in generators/parsers/world_grammar.py


@dataclass(frozen=True)
class RulesOptions:
    """The options of `rules`."""

    world: str = ""
    """World that gives the names: name or TOML file; empty: built-in ones, pug's textures."""


class GrammarRules(Parser):
    """Makes graphs by the rules of `menagerie.generators.parsers.world_grammar`."""

    def __init__(self, options: RulesOptions) -> None:
        """Load the names of the world; raises `UserError` if there is no such world."""
        self.words = Vocabulary.of(vocabulary_of(options.world)) if options.world else vocabulary_of("")

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
