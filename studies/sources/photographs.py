"""Photographs of a data root as a study's cells read them, those that are held out of training, and their numbers.

The test on held-out photographs asks which of five captions belongs to an image. It runs during training; nothing is
selected by it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.identity import digest, generator, seed_of
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.captions.templates import Caption
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import load_source

TOGETHER = "+"  # between the names of sources that are trained on together


def split_sources(together: str) -> tuple[str, ...]:
    """Split names such as "coco+visual_genome" into the names of the sources."""
    return tuple(name.replace("_", " ") for name in together.split(TOGETHER))


@dataclass(frozen=True)
class PhotographOptions:
    """How photographs are found and read. Paths decide no identity: the photographs have one of their own."""

    sources: tuple[str, ...]
    root: Path
    folders: tuple[tuple[str, tuple[Path, ...]], ...]
    resolution: int
    caption: str
    parser: str
    parses: Path
    kept_out: KeptOut
    unanswered: frozenset[str] = frozenset()
    """Captions for which the parser's server gave no answer: they are one node, and aren't asked again."""

    def place(self, source: str, parse: Callable[[str], SceneGraph]) -> Place:
        """The location of one source's files, and the options by which they are read."""
        return Place(
            root=self.root,
            resolution=self.resolution,
            parse=parse,
            folders=dict(self.folders),
            kept_out=self.kept_out,
            caption=self.caption if self.caption in load_source(source).recipes else "",
        )


class OpenedPhotographs(NamedTuple):
    """Photographs by source, and the parser that made their graphs; None if each caption is one node."""

    sources: Sequence[Photographs]
    parser: CaptionParser | None

    @property
    def identity(self) -> str:
        """Hash of all images, captions and graphs, and of the parser."""
        parser = self.parser.identity() if self.parser else {}
        return digest({"sources": [source.identity for source in self.sources], "parser": parser})


def open_photographs(opening: PhotographOptions) -> OpenedPhotographs:
    """Read the sources of a data root. Captions are parsed unless their graphs were kept before."""
    parser = open_parser(opening.parser, opening.parses) if opening.parser != DEFAULT else None
    parse = parser or one_node
    if parser and opening.unanswered:
        parse = WholeCaptionParser(parser, opening.unanswered)
    return OpenedPhotographs([load_source(name).open(opening.place(name, parse)) for name in opening.sources], parser)


@dataclass(frozen=True)
class WholeCaptionParser:
    """A parser that reads the captions in `whole` as one node."""

    parser: CaptionParser
    whole: frozenset[str]

    def __call__(self, text: str) -> SceneGraph:
        return one_node(text) if text in self.whole else self.parser(text)


SHARE, LEAST = 0.05, 10  # of the photographs; at most a fifth of few
OTHERS = 4  # captions of other photographs
GROUP = "caption"


def hold_out(names: Iterable[str]) -> frozenset[str]:
    """Choose the names of photographs that aren't trained on: those with the smallest hashes, whatever else is in the
    data.

    A photograph that two sources share has one name, and is held out of both.
    """
    ranked = sorted(set(names), key=lambda name: (seed_of(0, "held out", name), name))
    count = max(round(SHARE * len(ranked)), min(LEAST, len(ranked) // 5))
    return frozenset(ranked[:count])


class HeldOut(Benchmark):
    """A benchmark of held-out photographs: an item has one, its caption, and captions of other held-out ones."""

    logged_task = GROUP

    def __init__(self, sources: Sequence[Captioned], names: Sequence[Sequence[str]], chosen: frozenset[str]) -> None:
        """`names` has the names of the photographs of each source, `chosen` those that are held out."""
        self.name, self.sources = "the held-out photographs", list(sources)
        self.places: dict[str, tuple[int, int]] = {}
        for s, source_names in enumerate(names):
            for i, name in enumerate(source_names):
                if name in chosen:
                    self.places.setdefault(name, (s, i))
        known = {name: self._caption(name) for name in sorted(self.places)}
        self.order = list(known)
        self.numbers = {name: number for number, name in enumerate(known)}
        self.items = [item for name in known if (item := self._item(name, known))]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        """Return the photographs with these numbers, as their sources read them."""
        import torch

        places = [self.places[self.order[number]] for number in numbers]
        none = self.sources[0].images([])  # gives an empty batch its shape
        return torch.cat([none, *(self.sources[s].images([i]) for s, i in places)])

    def _caption(self, name: str) -> Caption:
        """Return the caption of a photograph that its item uses."""
        s, i = self.places[name]
        return self.sources[s].captions([i], [seed_of(0, "held-out caption", name)])[0]

    def _item(self, name: str, known: dict[str, Caption]) -> Item | None:
        """Make the item that asks for a photograph's caption among others; None if no other caption differs from it."""
        others: list[Caption] = []
        said = {plain_text(known[name].text)}
        for k in generator(0, "other captions", name).permutation(len(known)).tolist():
            text = known[self.order[k]]
            if plain_text(text.text) not in said:
                others.append(text)
                said.add(plain_text(text.text))
            if len(others) == OTHERS:
                break
        return Item(name, GROUP, (self.numbers[name],), (known[name], *others), name) if others else None


@dataclass(frozen=True)
class CaptionCounts:
    """Counts of photographs and captions, for reports."""

    images: int
    """Photographs that are trained on."""
    held_out: int
    captions: int
    left_out: tuple[tuple[str, int], ...] = ()
    """Number of photographs that are left out, by reason."""
    refused: tuple[tuple[str, int], ...] = ()
    """Number of texts that are left out, by reason."""
    parsed: str = ""
    """How many captions the parser parsed, and how many are one node, in words."""


def count_opened(opened: OpenedPhotographs, unanswered: int = 0) -> CaptionCounts:
    """Count opened photographs and their captions, `unanswered` of which are one node for want of an answer."""
    chosen = hold_out(name for source in opened.sources for name in source.names_of_images)
    kept = sum(name not in chosen for source in opened.sources for name in source.names_of_images)
    return CaptionCounts(
        images=kept,
        held_out=sum(map(len, opened.sources)) - kept,
        captions=sum(source.counts()["captions"] for source in opened.sources),
        left_out=add_counts(source.left_out for source in opened.sources),
        refused=add_counts(source.refused_texts for source in opened.sources),
        parsed=parsed_in_words(opened, unanswered),
    )


def parsed_in_words(opened: OpenedPhotographs, unanswered: int) -> str:
    """Say how many captions were parsed, and how many are one node; empty if none needed a parser."""
    if opened.parser is None or not opened.parser.counts().captions:
        return ""
    text = opened.parser.counts().text.partition(";")[0]  # the number of graphs kept before differs between commands
    return text + (f", and {unanswered} without an answer" if unanswered else "")


def add_counts(parts: Iterable[Mapping[str, int]]) -> tuple[tuple[str, int], ...]:
    """Add up the counts of several sources, by reason."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return tuple(total.items())
