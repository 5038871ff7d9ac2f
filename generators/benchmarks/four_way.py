"""Winoground and benchmarks like it: two images and two texts, each true of one image, scored in three ways.

Each record becomes three items, one under each rule of `FOUR_WAY_RULES`: text (each image prefers its text), image
(each text prefers its image), group (both). All rules are strict; chance is 25, 25 and 16.7 %.

- Winoground (Thrush et al. 2022): both captions have the same words. Parts are the tags of the paper's table 2.
- ColorSwap (Burapacheep et al. 2024): colours have changed places. Only the test split is used, 300 of 1000 records.
  The authors evaluate image-text models in a notebook that we haven't read.
- BiVLC (Miranda et al. 2024): SugarCrepe's true and false captions of COCO images, and a generated image for each false
  one; parts are SugarCrepe's edits. The paper's I2T is the text score, its T2I the image score. All photographs are of
  val2017, which training leaves out as a whole. The hub has the set as parquet; here it has one JSON object per line.
- Cola (Ray et al. 2023), multi-object setting: two photographs of Visual Genome, with attributes of two objects
  swapped. The authors' accuracy is the image score. The single-object setting, whose score is a mean average precision,
  isn't implemented.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.generators.benchmarks.benchmark import FOUR_WAY_RULES, Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, is_text, read_json_lines, read_json_list, read_json_rows

RULES = tuple(FOUR_WAY_RULES)
WINOGROUND = "winoground/examples.jsonl"
TAGS = ("collapsed_tag", "secondary_tag")
COLORSWAP = "colorswap/test.json"
BIVLC = "bivlc/test.jsonl"
COLA = "cola/COLA_multiobjects_matching_benchmark.json"


class FourWayRecord(NamedTuple):
    """A record of two images and two texts; image i belongs with text i."""

    name: str
    images: tuple[str, str]
    """Paths relative to the benchmark's folder of images."""
    texts: tuple[str, str]
    parts: tuple[str, ...] = ()
    """The tags or types that the record is also reported under."""


class FourWay(ItemBenchmark):
    """A benchmark of four-way items, scored by three rules. Each record is a cluster, and each rule is a task."""

    def __init__(self, name: str, images: str, given: Sequence[FourWayRecord], place: Place) -> None:
        records = [
            Record(
                f"{record.name} {rule}",
                rule,
                tuple(map(Photograph, record.images)),
                record.texts,
                record.name,
            )
            for record in given
            for rule in RULES
        ]
        super().__init__(name, images, records, place, FOUR_WAY_RULES)
        self.parts = {record.name: record.parts for record in given}

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The three scores of all records, then those of each part, named "Object: text"."""
        found: dict[str, list[Outcome]] = {rule: [] for rule in RULES}
        for item, outcome in zip(items, outcomes, strict=True):
            for name in (item.task, *(f"{part}: {item.task}" for part in self.parts[item.cluster])):
                found.setdefault(name, []).append(outcome)
        return {name: summarise(found[name]) for name in (*RULES, *sorted(found.keys() - set(RULES)))}


def four_way(name: str, read: Callable[[Place], Iterator[FourWayRecord]], count: int, **facts: Any) -> BenchmarkSpec:
    """The spec of a benchmark with `count` four-way items, whose images are in the folder `images` of its own."""
    images = f"{name}/images"

    def build(place: Place) -> FourWay:
        return FourWay(name, images, list(read(place)), place)

    return BenchmarkSpec(name=name, images=(images,), build=build, counts=dict.fromkeys(RULES, count), **facts)


def read_winoground(place: Place) -> Iterator[FourWayRecord]:
    for entry in read_json_lines(place.path(WINOGROUND)):
        name, texts = str(entry.field("id", int)), (entry.text("caption_0"), entry.text("caption_1"))
        tags = tuple(tag for key in TAGS if is_text(tag := entry.content.get(key)))
        yield FourWayRecord(name, (f"{entry.text('image_0')}.png", f"{entry.text('image_1')}.png"), texts, tags)


def read_colorswap(place: Place) -> Iterator[FourWayRecord]:
    for entry in read_json_list(place.path(COLORSWAP)):
        name, texts = str(entry.field("id", int)), (entry.text("caption_1"), entry.text("caption_2"))
        yield FourWayRecord(name, image_paths(entry, "image_1", "image_2"), texts)


def read_bivlc(place: Place) -> Iterator[FourWayRecord]:
    """Yield the records; the file gives no names, so a record's name is its position."""
    for number, entry in enumerate(read_json_lines(place.path(BIVLC))):
        texts = entry.text("caption"), entry.text("negative_caption")
        yield FourWayRecord(str(number), image_paths(entry, "image", "negative_image"), texts, (entry.text("type"),))


def image_paths(entry: FileRow, *keys: str) -> tuple[str, str]:
    """The paths of two images relative to the folder `images`: "images/0.png" is "0.png", and "0.png" stays."""
    first, second = (entry.text(key).removeprefix("images/") for key in keys)
    return first, second


def read_cola(place: Place) -> Iterator[FourWayRecord]:
    for row in read_json_rows(place.path(COLA), 4):
        yield FourWayRecord(row.place, cola_files(row), (row.text(1), row.text(3)))


def cola_files(row: FileRow) -> tuple[str, str]:
    """The names of the two photographs' files, which are the last parts of their addresses."""
    return row.text(0).rpartition("/")[2], row.text(2).rpartition("/")[2]


def cola_photographs(path: Path) -> Iterator[PhotographId]:
    return file_numbers(VISUAL_GENOME, path, (file for row in read_json_rows(path, 4) for file in cola_files(row)))


BENCHMARK_WINOGROUND = four_way(
    "winoground",
    read_winoground,
    400,
    about="two images and two captions of the same words in another order",
    files=(WINOGROUND,),
    source="huggingface.co/datasets/facebook/winoground (data/examples.jsonl, images.zip), once its terms are accepted",
    licence="Meta's research licence; not to be passed on",
)
BENCHMARK_COLORSWAP = four_way(
    "colorswap",
    read_colorswap,
    300,
    about="two images and two captions in which colours have changed places",
    files=(COLORSWAP,),
    source="github.com/Top34051/colorswap (test.json, images.zip), or huggingface.co/datasets/stanfordnlp/colorswap",
    licence="MIT",
)
BENCHMARK_BIVLC = four_way(
    "bivlc",
    read_bivlc,
    2933,
    about="a photograph and a generated image with their captions, of which each is the other's hard negative",
    files=(BIVLC,),
    source="huggingface.co/datasets/imirandam/BiVLC (parquet)",
    licence="MIT; images: Flickr's terms, see COCO",
    published={"CLIP ViT-B/32, OpenAI": {"text": 75.8, "image": 52.4, "group": 49.1}},
)
BENCHMARK_COLA = four_way(
    "cola",
    read_cola,
    210,
    about="two photographs whose objects have each other's attributes, and a caption of each",
    files=(COLA,),
    source="github.com/arijitray1993/COLA (data/, whose addresses name Visual Genome's images)",
    licence="MIT; images: Visual Genome, CC BY 4.0",
    photographs=cola_photographs,
)
