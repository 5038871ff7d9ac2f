"""Retrieval of photographs and captions, which several benchmarks share: R@1 and R@5 of texts and of images.

An image is right where any of its captions is among the best k of all captions, a caption where its image is among the
best k of all images. Captions are taken as they are, all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from envs.common.errors import UserError
from generators.benchmarks.matrix import MatrixBenchmark, Measure, Pool
from generators.benchmarks.photographs import Photograph, Place, Record
from generators.captions.templates import Caption
from generators.sources.json_file import read_json, read_json_list
from generators.sources.kept_out import PhotographId, file_numbers

MEASURES = tuple(Measure(f"{name} R@{k}", name == "I2T", k) for name in ("I2T", "T2I") for k in (1, 5))
SPLIT = "test"
Captioned = tuple[str, tuple[str, ...]]  # an image file and its captions


class Retrieval(MatrixBenchmark):
    """Each group of records is a pool of its own."""

    measures = MEASURES

    def __init__(self, name: str, folder: Path, records: Sequence[Record], place: Place) -> None:
        """A record is an image with its captions. Raises where a group has fewer than two."""
        super().__init__(name, folder, records, place)
        self.pools = [self._pool(group, place) for group in dict.fromkeys(record.group for record in records)]

    def _pool(self, group: str, place: Place) -> Pool:
        records = tuple(record for record in self.records if record.group == group)
        if len(records) < 2:
            where = f"{self.name} {group}".strip()
            raise UserError(f"{where}: {len(records)} images are there, and retrieval needs at least 2; get the others")
        images = tuple(self.numbers[record.images[0]] for record in records)
        texts = tuple((Caption(text, place.parse(text)),) for record in records for text in record.texts)
        owners = (row for row, record in enumerate(records) for _ in record.texts)
        return Pool(group, records, images, texts, tuple((row, column) for column, row in enumerate(owners)))


def records_of(captioned: Iterable[Captioned], group: str = "") -> list[Record]:
    """Records from image files with their captions."""
    return [Record(file, group, (Photograph(file),), texts) for file, texts in captioned]


def karpathy_test(place: Place, dataset: str, test: str) -> list[Captioned]:
    """The images and captions of Karpathy's test split, from his `dataset` file or from a list of the `test` alone."""
    if place.path(dataset).is_file():
        return karpathy_images(place.path(dataset))
    if place.path(test).is_file():
        return listed_images(place.path(test))
    raise UserError(f"there is neither {place.path(dataset)} nor {place.path(test)}; get one of them")


def karpathy_images(path: Path) -> list[Captioned]:
    """The test split of Karpathy's file, which is large and read once: retrieval and word orders share it."""
    state = path.stat()
    return list(karpathy_as_it_is(path.resolve(), state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=2)
def karpathy_as_it_is(path: Path, size: int, changed: int) -> tuple[Captioned, ...]:
    """The same of a file of `size` bytes that was `changed` at this time."""
    entries = [entry for entry in read_json(path).entries("images") if entry.text("split") == SPLIT]
    return tuple(
        (entry.text("filename"), tuple(sentence.text("raw") for sentence in entry.entries("sentences")))
        for entry in entries
    )


def listed_images(path: Path) -> list[Captioned]:
    """The images of BLIP's list of the test split."""
    entries = read_json_list(path)
    return [(entry.text("image").rpartition("/")[2], entry.texts("caption")) for entry in entries]


def photographs_of_test(collection: str, dataset: str) -> Callable[[Path], Iterator[PhotographId]]:
    """Reads which photographs of a collection a file has: Karpathy's if it is called like `dataset`, else BLIP's."""

    def shown(path: Path) -> Iterator[PhotographId]:
        read = karpathy_images if path.name == Path(dataset).name else listed_images
        return file_numbers(collection, path, (file for file, _ in read(path)))

    return shown
