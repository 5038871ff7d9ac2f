"""Photographs with captions as the data of training runs, alone or with a share of a split in each batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.sources.mixture import CaptionedSubset, Mixture
from menagerie.generators.sources.photographs import Photographs
from menagerie.studies.runs.data import CellData, Material, SplitData
from menagerie.studies.sources.photographs import (
    CaptionCounts,
    HeldOut,
    PhotographOptions,
    hold_out,
    open_photographs,
)

VERSION = 1  # of the rule for held-out photographs, and of how parts are mixed


@dataclass(frozen=True)
class RealData:
    """Captioned photographs of one or several sources; a split may supply the share `mix` of each batch."""

    photographs: str
    """Identity of the photographs' images, captions and graphs."""
    sources: str
    parser: str
    opening: PhotographOptions = field(compare=False, repr=False)
    numbers: CaptionCounts = field(compare=False)
    relational: bool = field(compare=False)
    """Whether captions state relations."""
    mix: float = 0.0
    """Share of the split in each batch."""
    synthetic: CellData | None = None
    """The split that is mixed in; None if none is."""
    closed: bool = False
    """Whether models have a closed vocabulary, of words without capitals and punctuation."""

    kind = "photographs"
    tests: tuple[str, ...] = field(default=("validation",), init=False, compare=False)

    @property
    def axes(self) -> dict[str, Any]:
        return {"sources": self.sources, "parser": self.parser, "mix": self.mix}

    @property
    def name(self) -> str:
        share = f", {100 * self.mix:g}% synthetic" if self.mix else ""
        return f"{self.sources}, {self.parser}{share}"

    @property
    def settings(self) -> dict[str, Any]:
        """The photographs, the split that is mixed in, and its share."""
        photographs = {"photographs": self.photographs, "version": VERSION}
        return photographs | ({"mix": self.mix, "synthetic": self.synthetic.settings} if self.synthetic else {})

    @property
    def splits(self) -> tuple[SplitData, ...]:
        """The split that is mixed in, unless it is a file of the user's."""
        return (self.synthetic,) if isinstance(self.synthetic, SplitData) else ()

    def counts(self) -> dict[str, Any]:
        return {"photographs": self.numbers.images, "captions": self.numbers.captions}

    def open(self, file: Path) -> Material:
        """Open the photographs, and the split's training subset from `file`; raises if the photographs have changed."""
        opened = open_photographs(self.opening)
        if opened.identity != self.photographs:
            raise UserError(
                f"the photographs of {self.sources} in {self.opening.root} have changed since this run was started; "
                "start the command again: it trains again what has changed"
            )
        inner = self.synthetic.open(file) if self.synthetic else None
        return assemble_material(opened.sources, inner, self.mix, self.closed)


def assemble_material(photographs: Sequence[Photographs], inner: Material | None, mix: float, closed: bool) -> Material:
    """Assemble the training data, with the held-out photographs as the only test."""
    chosen = hold_out(name for source in photographs for name in source.names_of_images)
    test = HeldOut(photographs, [source.names_of_images for source in photographs], chosen)
    texts = {text for source in photographs for text in source.texts()}
    if closed:
        texts = {plain for text in texts if (plain := plain_text(text))}
    train = mix_sources(training_portion(photographs, chosen), inner.train if inner else None, mix)
    return Material(train, {"validation": test}, sorted(texts.union(inner.texts if inner else ())), {}, may_be_cut=True)


def training_portion(photographs: Sequence[Photographs], chosen: frozenset[str]) -> list[Captioned]:
    """Return the part of each source that isn't held out. Raises if nothing of a source is left."""
    parts = []
    for source in photographs:
        places = [k for k, name in enumerate(source.names_of_images) if name not in chosen]
        if not places:
            raise UserError(f"{source.name} has too few photographs: all {len(source)} would be held out; get more")
        parts.append(CaptionedSubset(source, places))
    return parts


def mix_sources(parts: Sequence[Captioned], synthetic: Captioned | None, mix: float) -> Captioned:
    """Mix the photographs of all sources, in proportion to their numbers, with a share of the split in each batch."""
    if mix == 1 and synthetic:
        return synthetic
    if not synthetic and len(parts) == 1:
        return parts[0]
    total = sum(map(len, parts))
    shares = [(1 - mix) * len(part) / total for part in parts]
    return Mixture([*parts, synthetic], [*shares, mix]) if synthetic else Mixture(parts, shares)
