"""Which scene graphs models read of captions of our worlds: the generator's, a parser's, or either with errors.

The generator makes caption and graph of one scene, so its graph is right and whole. A parser has the caption alone, and
errs. What a caption means for a loss (which other images it is true of) stays as the generator says, for all models
alike: only what is read changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest, generator
from menagerie.envs.core.options import DATA
from menagerie.envs.core.validation import SHARE, validate
from menagerie.envs.scene import Thing
from menagerie.generators.captions.contents import phrases
from menagerie.generators.captions.graph import SceneGraph, with_moved_attributes, without_nodes
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import open_parser, read_parser
from menagerie.generators.vocabulary import Vocabulary

GENERATOR = "generator"
GraphsAt = Literal["train", "test", "both"]
GRAPHS_AT: tuple[GraphsAt, ...] = get_args(GraphsAt)


@dataclass(frozen=True)
class GraphSource:
    """Where the graphs come from that models read, for models that read graphs."""

    graphs: Annotated[str, DATA] = GENERATOR
    """What makes them: generator, or a parser that reads the caption alone, NAME or NAME:OPTION=VALUE,…
    (docs/parsing.md), such as rules and spacy-rules."""
    dropped_nodes: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a graph lacks one of its nodes, with its edges; one always stays."""
    moved_attributes: Annotated[float, DATA, SHARE] = 0.0
    """Probability that the attributes of a thing are those of another thing in the graph."""
    graphs_at: Annotated[GraphsAt, DATA] = "both"
    """Where models read these graphs: train, test or both; elsewhere they read the generator's."""

    def __post_init__(self) -> None:
        validate(self)
        if self.graphs != GENERATOR:
            read_parser(self.graphs)  # raises for one that there is not
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
        """What models read in "train" or "test"."""
        return replace(self, graphs_at="both") if self.graphs_at in (place, "both") else GraphSource()

    @property
    def trained_with(self) -> "GraphSource":
        """The source that is read in training as this one, and in tests the generator's."""
        here = self.at("train")
        return here if here.plain else replace(here, graphs_at="train")


def parser_digest(graphs: str) -> str:
    """Hash of all that decides a parser's graphs; empty for the generator. Raises where the parser can't work here."""
    return "" if graphs == GENERATOR else digest(open_parser(graphs).identity())


class ReadGraphs:
    """The graph that is read of each caption. The same caption and seed always give the same."""

    def __init__(self, source: GraphSource, words: Vocabulary, seed: int, parses: Path | None = None) -> None:
        """`parses` is the folder where slow parsers keep their graphs. Raises `UserError` where the parser can't work
        here, and on parsing where its server gives no answer."""
        self.source, self.seed = source, seed
        self.known: Mapping[str, Thing] = dict(phrases(words)) if source.moved_attributes else {}
        self.parser: CaptionParser | None = None if source.graphs == GENERATOR else open_parser(source.graphs, parses)
        self._read: dict[str, SceneGraph] = {}

    def __call__(self, caption: str, graph: SceneGraph) -> SceneGraph:
        """The graph that models read of a caption; `graph` is the generator's."""
        if caption not in self._read:
            self._read[caption] = self.noisy(caption, self.parser(caption) if self.parser else graph)
        return self._read[caption]

    def noisy(self, caption: str, graph: SceneGraph) -> SceneGraph:
        """The graph with the errors that are drawn for a caption."""
        if share := self.source.moved_attributes:
            random = generator(self.seed, "moved attributes", caption)
            graph = with_moved_attributes(graph, share, self.known, random)
        if share := self.source.dropped_nodes:
            graph = without_nodes(graph, share, generator(self.seed, "dropped nodes", caption))
        return graph
