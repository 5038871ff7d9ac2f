"""Photographs of Visual Genome, which two sources annotate: their numbers, and which of them are taken."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from menagerie.generators.sources.annotated import Annotations
from menagerie.generators.sources.json_file import LARGEST, Entry, checked
from menagerie.generators.sources.json_stream import stream_list
from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, KeptOut, PhotographId

IMAGE_DATA, FOLDERS = "vg/image_data.json", ("vg/VG_100K", "vg/VG_100K_2")
UNKNOWN = "not in image_data.json, so that nobody knows whether COCO has it"
COLLECTIONS = {"coco_id": COCO, "flickr_id": FLICKR}


class Numbers(NamedTuple):
    """A photograph's numbers: Visual Genome's first, then those that are known of others."""

    all: tuple[PhotographId, ...]

    @property
    def name(self) -> str:
        """COCO's number where it has one: the same in every source."""
        return str(next((number for number in self.all if number.collection == COCO), self.all[0]))


class Selection:
    """The photographs that are taken, and how many aren't."""

    def __init__(self, kept_out: KeptOut, empty: str) -> None:
        """`empty`: why those are left out that have nothing to make captions of."""
        self.kept_out, self.empty = kept_out, empty
        self.left_out: Counter[str] = Counter()
        self.files: list[str] = []
        """Of those that are taken, as far as `take` was read."""

    def take(self, every: Iterator[tuple[str, Numbers, Annotations]]) -> Iterator[tuple[str, Annotations]]:
        """Names and annotations of those that are taken, in their order."""
        for file, numbers, its in every:
            reason = self.kept_out.reason(numbers.all) or ("" if its.phrases else self.empty)
            if reason:
                self.left_out[reason] += 1
            else:
                self.files.append(file)
                yield numbers.name, its


def image_numbers(path: Path) -> dict[int, Numbers]:
    """The numbers of all photographs by that of Visual Genome, from its `image_data.json`."""
    every: dict[int, Numbers] = {}
    for entry in stream_list(path):
        own = number_in(entry, "image_id" if "image_id" in entry.content else "id")  # of older files
        others = [number_in(entry, key) for key in ("coco_id", "flickr_id") if key in entry.content]
        if own is None or own.number in every:
            raise entry.error("has the 'image_id' of an entry before it, or null")
        every[own.number] = Numbers((own, *filter(None, others)))
    return every


def number_in(entry: Entry, key: str) -> PhotographId | None:
    """A number, which may be null."""
    number = entry.field(key, int, type(None))
    if number is not None and not 0 <= number < LARGEST**2:
        raise entry.error(f"has a {key!r} that is no number of an image")
    return None if number is None else PhotographId(COLLECTIONS.get(key, VISUAL_GENOME), number)


def inner(entry: Entry, key: str) -> list[Entry]:
    """The objects of a list of an entry, whose errors name both places."""
    listed = enumerate(entry.field(key, list))
    return [checked(Entry(entry.file, f"{entry.place}.{key}[{k}]", item)) for k, item in listed]


def inside(entry: Entry, key: str) -> Entry:
    """The object in an entry."""
    return Entry(entry.file, f"{entry.place}.{key}", entry.field(key, dict))
