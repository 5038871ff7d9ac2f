"""The source of the scene graphs that models read: the generator, a parser, or either of them with added errors.

The generator makes caption and graph from one scene, so its graphs are right and complete. A parser sees only the
caption, and may make errors. The source changes only what models read: losses always use the generator's
graphs to find of which images a caption is true.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest, generator
from menagerie.envs.core.options import DATA
from menagerie.envs.core.validation import SHARE, validate
from menagerie.envs.scene import Object
from menagerie.generators.captions.contents import phrases
from menagerie.generators.captions.graph import SceneGraph, with_moved_attributes, without_nodes
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import open_parser, read_parser
from menagerie.generators.parsers.rules import GrammarRules
from menagerie.generators.vocabulary import Vocabulary

GENERATOR = "generator"
GraphsAt = Literal["train", "test", "both"]
GRAPHS_AT: tuple[GraphsAt, ...] = get_args(GraphsAt)


@dataclass(frozen=True)
class GraphSource:
    """The source of the graphs that models read, if they read graphs."""

    graphs: Annotated[str, DATA] = GENERATOR
    """Where scene graphs come from: generator, which knows the scene, or a parser of the caption, such as rules or
    spacy-rules, as NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    dropped_nodes: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a node and its edges are missing from a graph; at least one node always stays."""
    moved_attributes: Annotated[float, DATA, SHARE] = 0.0
    """Probability that an object's attributes are given to another object in the graph."""
    graphs_at: Annotated[GraphsAt, DATA] = "both"
    """When models read these graphs: in train, test or both; otherwise they read the generator's."""

    def __post_init__(self) -> None:
        validate(self)
        if self.graphs != GENERATOR:
            read_parser(self.graphs)  # raises if there is no such parser
        elif self.plain and self.graphs_at != "both":
            raise UserError(
                f"--graphs-at {self.graphs_at} changes nothing where graphs are the generator's; give --graphs, "
                "--dropped-nodes or --moved-attributes beside it, or leave it out"
            )

    @property
    def plain(self) -> bool:
        """Whether graphs are the generator's, without errors."""
        return self.graphs == GENERATOR and not self.dropped_nodes and not self.moved_attributes

    def at(self, place: str) -> "GraphSource":
        """Return the source of the graphs that models read in "train" or "test"."""
        return replace(self, graphs_at="both") if self.graphs_at in (place, "both") else GraphSource()

    @property
    def trained_with(self) -> "GraphSource":
        """A source with the same graphs in training, and the generator's in tests."""
        here = self.at("train")
        return here if here.plain else replace(here, graphs_at="train")


def parser_digest(graphs: str) -> str:
    """A hash of all that decides a parser's graphs; "" for the generator. Raises if the parser can't run here."""
    return "" if graphs == GENERATOR else digest(open_parser(graphs).identity())


class ReadGraphs:
    """Gives the graph that models read for each caption; the same caption and seed always give the same graph."""

    def __init__(self, source: GraphSource, words: Vocabulary, seed: int, parses: Path | None = None) -> None:
        """Open the parser of `source`; slow parsers keep their graphs in the folder `parses`. Raises `UserError` if the
        parser can't run here; later, `__call__` raises if its server gives no answer."""
        self.source, self.seed = source, seed
        self.known: Mapping[str, Object] = dict(phrases(words)) if source.moved_attributes else {}
        self.parser: CaptionParser | None = None if source.graphs == GENERATOR else open_parser(source.graphs, parses)
        if self.parser and isinstance(rules := self.parser.parser, GrammarRules):
            rules.learn_names(words)

    def __call__(self, caption: str, graph: SceneGraph) -> SceneGraph:
        """Return the graph that models read for a caption, with drawn errors. `graph` is the generator's."""
        graph = self.parser(caption) if self.parser else graph
        if share := self.source.moved_attributes:
            random = generator(self.seed, "moved attributes", caption)
            graph = with_moved_attributes(graph, share, self.known, random)
        if share := self.source.dropped_nodes:
            graph = without_nodes(graph, share, generator(self.seed, "dropped nodes", caption))
        return graph
