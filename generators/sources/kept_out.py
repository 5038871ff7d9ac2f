"""Photographs that tests show, by their numbers in COCO, Visual Genome and Flickr, to be left out of training.

COCO and Visual Genome are taken from Flickr, and half of Visual Genome's photographs are COCO's: one photograph may
have a number in each of the three.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError

COCO, VISUAL_GENOME, FLICKR = "COCO", "Visual Genome", "Flickr"
# COCO's file names: 000000000042.jpg since 2017, COCO_val2014_000000000042.jpg before.
COCO_FILE = re.compile(r"(?:^|[/_])(\d{12})\.jpe?g\Z")
# 2513260012_03d33305cf.jpg in Flickr8k, 1000092795.jpg elsewhere.
NUMBERED_FILE = re.compile(r"(?:^|/)(\d{1,18})(?:_[0-9a-f]{10})?\.jpe?g\Z")
# http://farm4.staticflickr.com/3153/2970773875_164f0c0b83_z.jpg
FLICKR_ADDRESS = re.compile(r"flickr\.com/(?:\d+/)*(\d{1,18})_[0-9a-f]+(?:_\w{1,2})?\.(?:jpg|png|gif)(?:\?|\Z)")


class PhotographId(NamedTuple):
    """A photograph's number in a collection."""

    collection: str
    number: int

    def __str__(self) -> str:
        return f"{self.collection} {self.number}"


@dataclass(frozen=True)
class KeptOut:
    """Photographs that training leaves out; by default none.
    `menagerie.generators.benchmarks.tested_photographs.images_of_tests` collects those of COCO's validation set and of
    all benchmarks on disk."""

    images: Mapping[PhotographId, str] = field(default_factory=dict)
    """Reason for leaving out each photograph, such as "in sugarcrepe"."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """For each collection, the missing information, without which tested photographs may get into training."""
    allow_unknown: bool = False
    """Whether sources may be used in spite of missing information; otherwise missing information raises."""

    def reason(self, numbers: Iterable[PhotographId]) -> str:
        """The reason for leaving out a photograph with any of these numbers; empty if it isn't left out."""
        return next((self.images[number] for number in numbers if number in self.images), "")

    def require(self, *collections: str) -> None:
        """Raise if it is unknown which photographs of a collection tests show, unless `allow_unknown` is set."""
        for collection in collections:
            if collection in self.unknown and not self.allow_unknown:
                raise UserError(self.unknown[collection])


def coco_number(file: str) -> PhotographId | None:
    """COCO's number in a file name; None if the name isn't one of COCO's."""
    found = COCO_FILE.search(file)
    return PhotographId(COCO, int(found[1])) if found else None


def flickr_number(address: object) -> PhotographId | None:
    """Flickr's number in a photograph's address; None if the address isn't Flickr's."""
    found = FLICKR_ADDRESS.search(address) if isinstance(address, str) else None
    return PhotographId(FLICKR, int(found[1])) if found else None


def file_numbers(collection: str, path: Path, files: Iterable[str]) -> Iterator[PhotographId]:
    """Yield the numbers of image files listed in the file `path`; raises for a file name without a number."""
    pattern = COCO_FILE if collection == COCO else NUMBERED_FILE
    for file in files:
        found = pattern.search(file)
        if not found:
            raise UserError(
                f"{path} names {file!r:.200}, which isn't called as {collection} calls images; put the authors' own "
                "file there"
            )
        yield PhotographId(collection, int(found[1]))
