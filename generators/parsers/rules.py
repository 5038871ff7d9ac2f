"""Parsers without a model: `rules`, by the grammar of our worlds' captions, and `one-node`, which parses nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.generators.parsers.any_caption import parse, vocabulary_of
from menagerie.generators.parsers.parser import Parsed
from menagerie.generators.parsers.registry import NoOptions, ParserSpec
from menagerie.generators.vocabulary import Vocabulary

VERSION = 1  # of the grammar in generators/parsers/world_grammar.py


@dataclass(frozen=True)
class RulesOptions:
    """Of the grammar."""

    world: str = ""
    """A world by name, or its TOML file, whose names are known; without one all names that ship."""


class GrammarRules:
    """Graphs by the rules of `menagerie.generators.parsers.world_grammar`."""

    def __init__(self, options: RulesOptions) -> None:
        """Raises `UserError` for a world that isn't there."""
        self.words = Vocabulary.of(vocabulary_of(options.world)) if options.world else vocabulary_of("")

    def identity(self) -> Mapping[str, Any]:
        """Version of the rules, and the names that they know."""
        return {"parser": "rules", "version": VERSION, "words": digest(self.words.to_json())}

    def spent(self) -> Mapping[str, int]:
        return {}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """Parse captions in order; fails for a caption with words that no world of ours has."""
        for caption in captions:
            try:
                yield Parsed(caption, parse(caption, self.words))
            except UserError as error:
                yield Parsed(caption, None, f"not of our worlds: {error}")


PARSER = ParserSpec(
    "rules", "the grammar of our worlds' captions, and nothing of their scenes", GrammarRules, RulesOptions, kept=False
)


class OneNode:
    """Leaves captions as they are."""

    def identity(self) -> Mapping[str, str]:
        return {"parser": "one-node"}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        return (Parsed(caption, None, "left whole") for caption in captions)

    def spent(self) -> Mapping[str, int]:
        return {}


PARSER_ONE_NODE = ParserSpec("one-node", "leaves each caption whole", lambda options: OneNode(), NoOptions, kept=False)
