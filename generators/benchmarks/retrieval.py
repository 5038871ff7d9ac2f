"""Retrieval of photographs and captions: R@1 and R@5 of texts and of images, on test splits of COCO and Flickr.

An image is right if any of its captions is among the best k of all captions; a caption is right if its image is among
the best k of all images. All captions are used, unchanged. Published figures use the test splits of Karpathy and
Fei-Fei (2015): 5000 images of COCO with 25 010 captions, 1000 of Flickr30k and 1000 of Flickr8k with 5000 each. COCO
val2017, which many have, has other images, so its figures differ.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool, Recall
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec, benchmark_of_files, benchmark_spec
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.coco import read_coco
from menagerie.generators.sources.kept_out import COCO, FLICKR, PhotographId, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_entries, read_json_object

MEASURES = tuple(Recall(f"{name} R@{k}", name == "I2T", k) for name in ("I2T", "T2I") for k in (1, 5))
SPLIT = "test"
CaptionedImage = tuple[str, tuple[str, ...]]  # an image file and its captions


class Retrieval(MatrixBenchmark):
    """Retrieval between images and texts; each task of records is a pool."""

    measures = MEASURES

    def __init__(self, name: str, folder: str, records: Sequence[Record], place: Place) -> None:
        """Each record is an image with its captions. Raises if a task has fewer than two records."""
        super().__init__(name, folder, records, place)
        self.pools = [self._pool(task, place) for task in dict.fromkeys(record.task for record in records)]

    def _pool(self, task: str, place: Place) -> Pool:
        records = tuple(record for record in self.records if record.task == task)
        if len(records) < 2:
            where = f"{self.name} {task}".strip()
            problem = f"{where}: {len(records)} images are there, and retrieval needs at least 2"
            raise UserError(f"{problem}; {self.lacking or 'get the others'}")
        images = tuple(self.numbers[record.images[0]] for record in records)
        texts = tuple((Caption(text, place.parse(text)),) for record in records for text in record.texts)
        owners = (row for row, record in enumerate(records) for _ in record.texts)
        return Pool(task, records, images, texts, tuple((row, column) for column, row in enumerate(owners)))


def caption_records(captioned: Iterable[CaptionedImage], task: str = "") -> list[Record]:
    """Make records from image files and their captions."""
    return [Record(file, task, (Photograph(file),), texts) for file, texts in captioned]


def karpathy_test(place: Place, forms: Sequence[str]) -> list[CaptionedImage]:
    """Karpathy's test split, from the first file that exists: his own of all splits, or BLIP's list of this split."""
    path = next((path for path in map(place.path, forms) if path.is_file()), None)
    if path is None:
        raise UserError(f"there is neither {' nor '.join(map(str, map(place.path, forms)))}; get one of them")
    return captions_in(path, forms)


def captions_in(path: Path, forms: Sequence[str]) -> list[CaptionedImage]:
    """The images and captions in a file, whose name tells which of the `forms` it has."""
    if path.name != Path(forms[0]).name:
        return [(entry.file_name("image"), entry.texts("caption")) for entry in read_entries(path, list)]
    entries = [entry for entry in read_json_object(path).rows("images") if entry.text("split") == SPLIT]
    return [
        (entry.text("filename"), tuple(sentence.text("raw") for sentence in entry.rows("sentences")))
        for entry in entries
    ]


def karpathy(name: str, collection: str, images: str, forms: Sequence[str]) -> BenchmarkSpec:
    """The spec of retrieval on Karpathy's test split of a collection; captions are in one of the files `forms`."""

    def build(place: Place) -> Retrieval:
        return Retrieval(name, images, caption_records(karpathy_test(place, forms)), place)

    def shown(path: Path) -> Iterator[PhotographId]:
        return file_numbers(collection, path, (file for file, _ in captions_in(path, forms)))

    return benchmark_spec(name, build, (images,), one_of=tuple(forms), photographs=shown)


BENCHMARK_RETRIEVAL_COCO = karpathy(
    "retrieval-coco", COCO, "coco/val2014", ("coco/dataset_coco.json", "coco/coco_karpathy_test.json")
)
BENCHMARK_RETRIEVAL_FLICKR30K = karpathy(
    "retrieval-flickr30k",
    FLICKR,
    "flickr30k/images",
    ("flickr30k/dataset_flickr30k.json", "flickr30k/flickr30k_test.json"),
)
BENCHMARK_RETRIEVAL_FLICKR8K = benchmark_of_files(
    "retrieval-flickr8k",
    {"": "flickr8k/dataset_flickr8k.json"},
    lambda path, part: caption_records(captions_in(path, (path.name,))),
    "flickr8k/images",
    kind=Retrieval,
    shows=FLICKR,
)
BENCHMARK_RETRIEVAL_COCO_VAL2017 = benchmark_of_files(
    "retrieval-coco-val2017",
    {"": "coco/annotations/captions_val2017.json"},
    lambda path, part: caption_records((image.file, tuple(image.texts)) for image in read_coco(path)),
    "coco/val2017",
    kind=Retrieval,
    shows=COCO,
)
