"""Photographs of a data root, read as a study's cells read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.identity import digest
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.registry import SourcePlace, load, one_node

TOGETHER = "+"  # between the names of sources that are trained on together


def names_of(together: str) -> tuple[str, ...]:
    """ "coco+visual_genome" -> the names of its sources."""
    return tuple(name.replace("_", " ") for name in together.split(TOGETHER))


@dataclass(frozen=True)
class Opening:
    """How photographs are found and read. Where they lie decides nothing; what is read has an identity of its own."""

    sources: tuple[str, ...]
    root: Path
    folders: tuple[tuple[str, Path], ...]
    resolution: int
    caption: str
    parser: str
    parses: Path
    kept_out: KeptOut
    unanswered: frozenset[str] = frozenset()
    """Captions to which the parser's server gave no answer, and which are one node: none of them is requested again."""

    def place(self, source: str, parse: Callable[[str], SceneGraph]) -> SourcePlace:
        """Where one of the sources is, and what becomes of its captions."""
        return SourcePlace(
            root=self.root,
            resolution=self.resolution,
            parse=parse,
            folders=dict(self.folders),
            kept_out=self.kept_out,
            caption=self.caption if self.caption in load(source).recipes else "",
        )


class Opened(NamedTuple):
    """Photographs by source, and what made their graphs; None where each caption is one node."""

    sources: Sequence[Photographs]
    parser: CaptionParser | None

    @property
    def identity(self) -> str:
        """Of all images, captions and graphs, and of the parser."""
        parser = self.parser.identity() if self.parser else {}
        return digest({"sources": [source.identity for source in self.sources], "parser": parser})


def open_photographs(opening: Opening) -> Opened:
    """Read the sources of a data root; captions that have no graph are parsed, or known from before."""
    parser = open_parser(opening.parser, opening.parses) if opening.parser != DEFAULT else None
    parse = parser or one_node
    if parser and opening.unanswered:
        parse = AnsweredAlone(parser, opening.unanswered)
    return Opened([load(name).open(opening.place(name, parse)) for name in opening.sources], parser)


@dataclass(frozen=True)
class AnsweredAlone:
    """A parser that leaves some captions whole."""

    parser: CaptionParser
    whole: frozenset[str]

    def __call__(self, text: str) -> SceneGraph:
        """The graph of a caption."""
        return one_node(text) if text in self.whole else self.parser(text)
