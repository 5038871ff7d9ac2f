"""Photographs with captions as the data of training runs, alone or with a share of a split in every batch."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envs.common.errors import UserError
from envs.common.identity import digest
from studies.runs.data import CellData, Material

if TYPE_CHECKING:
    from generators.captioned import Captioned
    from generators.captions.graph import SceneGraph
    from generators.parsers.parser import CaptionParser
    from generators.sources.kept_out import KeptOut
    from generators.sources.photographs import Photographs
    from generators.sources.place import SourcePlace

VERSION = 1  # of which photographs are held out, and of how parts are mixed
TOGETHER = "+"  # between the names of sources that are trained on together


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
    kept_out: "KeptOut"
    unanswered: frozenset[str] = frozenset()
    """Captions to which the parser's server gave no answer, and which are one node: none of them is requested again."""

    def place(self, source: str, parse: Callable[[str], "SceneGraph"]) -> "SourcePlace":
        """Where one of the sources is, and what becomes of its captions."""
        from generators.sources.place import SourcePlace
        from generators.sources.registry import load

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

    sources: Sequence["Photographs"]
    parser: "CaptionParser | None"

    @property
    def identity(self) -> str:
        """Of all images, captions and graphs, and of the parser."""
        parser = self.parser.identity() if self.parser else {}
        return digest({"sources": [source.identity for source in self.sources], "parser": parser})


def open_photographs(opening: Opening) -> Opened:
    """Read the sources of a data root; captions that have no graph are parsed, or known from before."""
    from generators.parsers.registry import DEFAULT, open_parser
    from generators.sources.place import one_node
    from generators.sources.registry import load

    parser = open_parser(opening.parser, opening.parses) if opening.parser != DEFAULT else None
    parse = parser or one_node
    if parser and opening.unanswered:
        parse = AnsweredAlone(parser, opening.unanswered)
    return Opened([load(name).open(opening.place(name, parse)) for name in opening.sources], parser)


@dataclass(frozen=True)
class AnsweredAlone:
    """A parser that leaves some captions whole."""

    parser: "CaptionParser"
    whole: frozenset[str]

    def __call__(self, text: str) -> "SceneGraph":
        """The graph of a caption."""
        from generators.sources.place import one_node

        return one_node(text) if text in self.whole else self.parser(text)


@dataclass(frozen=True)
class Numbers:
    """How much there is, for reports."""

    images: int
    """That are trained on."""
    held_out: int
    captions: int
    left_out: tuple[tuple[str, int], ...] = ()
    """Photographs by why they are left out."""
    refused: tuple[tuple[str, int], ...] = ()
    """Texts by why they are left out."""
    parsed: str = ""
    """How many captions the parser parsed, and how many are one node, in words."""


@dataclass(frozen=True)
class RealData:
    """Photographs of one source or several with their captions, and a share of a split in every batch."""

    photographs: str
    """Identity of their images, captions and graphs."""
    sources: str
    parser: str
    mix: float
    """Share of the split."""
    synthetic: CellData | None
    """The split; None where it has no share."""
    closed: bool
    """Whether models have a vocabulary of their own, which then has words without capitals and punctuation."""
    opening: Opening = field(compare=False, repr=False)
    numbers: Numbers = field(compare=False)
    relational: bool = field(default=False, compare=False)
    """Whether captions state relations."""

    kind = "photographs"
    tests: tuple[str, ...] = field(default=("validation",), init=False, compare=False)

    @property
    def axes(self) -> dict[str, Any]:
        """What is trained on."""
        return {"sources": self.sources, "parser": self.parser, "mix": self.mix}

    @property
    def name(self) -> str:
        """Short text for progress bars."""
        share = f", {self.mix:.0%} synthetic" if self.mix else ""
        return f"{self.sources}, {self.parser}{share}"

    @property
    def settings(self) -> dict[str, Any]:
        """The photographs, the split and its share."""
        own = {"photographs": self.photographs, "version": VERSION}
        return own | ({"mix": self.mix, "synthetic": self.synthetic.settings} if self.synthetic else {})

    def counts(self) -> dict[str, Any]:
        """Photographs and captions."""
        return {"photographs": self.numbers.images, "captions": self.numbers.captions}

    def open(self, file: Path) -> Material:
        """The photographs, and the split's training subset from `file`; raises if they are others by now."""
        opened = open_photographs(self.opening)
        if opened.identity != self.photographs:
            raise UserError(
                f"the photographs of {self.sources} in {self.opening.root} have changed since this run was started; "
                "start the command again, which trains what they change"
            )
        inner = self.synthetic.open(file) if self.synthetic else None
        return material(opened.sources, inner, self.mix, self.closed)


def material(photographs: Sequence["Photographs"], inner: Material | None, mix: float, closed: bool) -> Material:
    """What is trained on, and the held-out photographs as its one test."""
    from generators.captions.plain_text import plain_text
    from studies.real_training.hold_out import HeldOut, held_out

    chosen = held_out(name for source in photographs for name in source.names_of_images)
    test = HeldOut(photographs, [source.names_of_images for source in photographs], chosen)
    texts = {text for source in photographs for text in source.texts()}
    if closed:
        texts = {plain for text in texts if (plain := plain_text(text))}
    train = mixed(rest_of(photographs, chosen), inner.train if inner else None, mix)
    return Material(train, {"validation": test}, sorted(texts.union(inner.texts if inner else ())), {}, may_be_cut=True)


def rest_of(photographs: Sequence["Photographs"], chosen: frozenset[str]) -> list["Captioned"]:
    """What of each source is trained on; a source of which nothing is left raises."""
    from generators.sources.part import Part

    parts = []
    for source in photographs:
        places = [k for k, name in enumerate(source.names_of_images) if name not in chosen]
        if not places:
            raise UserError(f"{source.name} has too few photographs: all {len(source)} would be held out; get more")
        parts.append(Part(source, places))
    return parts


def mixed(parts: Sequence["Captioned"], synthetic: "Captioned | None", mix: float) -> "Captioned":
    """Photographs of all sources alike, and a share of the split in every batch."""
    from generators.sources.mixture import Mixture

    if mix == 1 and synthetic:
        return synthetic
    if not synthetic and len(parts) == 1:
        return parts[0]
    total = sum(map(len, parts))
    shares = [(1 - mix) * len(part) / total for part in parts]
    return Mixture([*parts, synthetic], [*shares, mix]) if synthetic else Mixture(parts, shares)


def numbers_of(opened: Opened, unanswered: int = 0) -> Numbers:
    """How much there is of opened photographs; `unanswered` captions are one node for want of an answer."""
    from studies.real_training.hold_out import held_out

    chosen = held_out(name for source in opened.sources for name in source.names_of_images)
    kept = sum(name not in chosen for source in opened.sources for name in source.names_of_images)
    return Numbers(
        images=kept,
        held_out=sum(map(len, opened.sources)) - kept,
        captions=sum(source.counts()["captions"] for source in opened.sources),
        left_out=added(source.left_out for source in opened.sources),
        refused=added(source.refused_texts for source in opened.sources),
        parsed=parsed_of(opened, unanswered),
    )


def parsed_of(opened: Opened, unanswered: int) -> str:
    """How many captions were parsed, and how many are one node; empty where none needed a parser."""
    if opened.parser is None or not opened.parser.counts().captions:
        return ""
    text = opened.parser.counts().text.partition(";")[0]  # how many were known before is of one command alone
    return text + (f", and {unanswered} without an answer" if unanswered else "")


def added(parts: Iterable[Mapping[str, int]]) -> tuple[tuple[str, int], ...]:
    """Counts by reason of several sources together."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return tuple(total.items())


def names_of(together: str) -> tuple[str, ...]:
    """ "coco+visual_genome" -> the names of its sources."""
    return tuple(name.replace("_", " ") for name in together.split(TOGETHER))
