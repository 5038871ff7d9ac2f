"""The base of Winoground and benchmarks like it: two images and two texts, each true of one image, scored in three
ways.

Each record becomes three items, one under each rule of `QUADS`: text (each image prefers its text), image (each text
prefers its image), group (both). All rules are strict; chance is 25, 25 and 16.7 %.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from menagerie.generators.benchmarks.benchmark import QUADS, Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record, by_group
from menagerie.generators.sources.place import Place

RULES = tuple(QUADS)


class Quad(NamedTuple):
    """A record of two images and two texts; image i belongs with text i."""

    name: str
    images: tuple[str, str]
    """Paths relative to the benchmark's folder of images."""
    texts: tuple[str, str]
    parts: tuple[str, ...] = ()
    """The tags or types that the record is also reported under."""


class FourWay(Photographs):
    """A benchmark of quads, scored by three rules. Each record is a cluster, and each rule is a group."""

    def __init__(self, name: str, images: str, quads: Sequence[Quad], place: Place) -> None:
        super().__init__(name, images, [record for quad in quads for record in records_of(quad)], place, QUADS)
        self.parts = {quad.name: quad.parts for quad in quads}

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The three scores of all records, then those of each part, named "Object: text"."""
        whole = by_group(items, outcomes)
        parts: dict[str, list[Outcome]] = {}
        for item, outcome in zip(items, outcomes, strict=True):
            for part in self.parts[item.cluster]:
                parts.setdefault(f"{part}: {item.group}", []).append(outcome)
        return {rule: summarise(whole.get(rule, [])) for rule in RULES} | {
            name: summarise(part) for name, part in sorted(parts.items())
        }


def records_of(quad: Quad) -> list[Record]:
    """Make one record of a quad for each scoring rule."""
    images = tuple(map(Photograph, quad.images))
    return [Record(f"{quad.name} {rule}", rule, images, quad.texts, quad.name) for rule in RULES]


def below_images(path: str) -> str:
    """Make a path relative to the benchmark's folder `images`: "images/0.png" becomes "0.png", and "0.png" stays."""
    return path.removeprefix("images/")
