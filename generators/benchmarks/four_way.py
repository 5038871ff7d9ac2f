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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.generators.benchmarks.benchmark import FOUR_WAY_RULES, Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec, benchmark_of_files
from menagerie.generators.sources.kept_out import VISUAL_GENOME, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, is_text, read_entries, read_json_lines, read_lists

RULES = tuple(FOUR_WAY_RULES)
TAGS = ("collapsed_tag", "secondary_tag")


class FourWay(ItemBenchmark):
    """A benchmark of four-way items, scored by three rules. Each record is a cluster, and each rule is a task."""

    def __init__(self, name: str, folder: str, given: Sequence[Record], place: Place) -> None:
        """Each of `given` has two images and two texts; image i belongs with text i."""
        records = [
            record._replace(name=f"{record.name} {rule}", task=rule, cluster=record.name)
            for record in given
            for rule in RULES
        ]
        super().__init__(name, folder, records, place, FOUR_WAY_RULES)
        self.tags = {record.name: record.tags for record in given}

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The three scores of all records, then those of each tag, named "Object: text"."""
        found: dict[str, list[Outcome]] = {rule: [] for rule in RULES}
        for item, outcome in zip(items, outcomes, strict=True):
            for name in (item.task, *(f"{tag}: {item.task}" for tag in self.tags[item.cluster])):
                found.setdefault(name, []).append(outcome)
        return {name: summarise(found[name]) for name in (*RULES, *sorted(found.keys() - set(RULES)))}


def four_way(
    name: str, file: str, read: Callable[[Path, str], Iterable[Record]], count: int, **facts: Any
) -> BenchmarkSpec:
    """The spec of a benchmark with `count` four-way items, whose images are in the folder `images` of its own."""
    facts |= {"kind": FourWay, "counts": dict.fromkeys(RULES, count)}
    return benchmark_of_files(name, {"": file}, read, f"{name}/images", **facts)


def four_way_record(
    row: FileRow, name: object, images: Iterable[str], texts: tuple[str | int, str | int], tags: tuple[str, ...] = ()
) -> Record:
    """Make a record of two images' files, and two texts by their keys."""
    return Record(str(name), "", tuple(map(Photograph, images)), tuple(map(row.text, texts)), tags=tags)


def read_winoground(path: Path, part: str) -> Iterator[Record]:
    for entry in read_json_lines(path):
        images = (f"{entry.text(key)}.png" for key in ("image_0", "image_1"))
        tags = tuple(tag for key in TAGS if is_text(tag := entry.content.get(key)))
        yield four_way_record(entry, entry.field("id", int), images, ("caption_0", "caption_1"), tags)


def read_colorswap(path: Path, part: str) -> Iterator[Record]:
    """Yield the records; paths of images begin with their folder on the hub."""
    for entry in read_entries(path, list):
        images = (entry.text(key).removeprefix("images/") for key in ("image_1", "image_2"))
        yield four_way_record(entry, entry.field("id", int), images, ("caption_1", "caption_2"))


def read_bivlc(path: Path, part: str) -> Iterator[Record]:
    """Yield the records; the file gives no names, so a record's name is its position."""
    for number, entry in enumerate(read_json_lines(path)):
        images = (entry.text(key).removeprefix("images/") for key in ("image", "negative_image"))
        yield four_way_record(entry, number, images, ("caption", "negative_caption"), (entry.text("type"),))


def read_cola(path: Path, part: str) -> Iterator[Record]:
    """Yield the records; the names of files are the last parts of the images' addresses."""
    for row in read_lists(path, 4):
        yield four_way_record(row, row.place, (row.file_name(0), row.file_name(2)), (1, 3))


BENCHMARK_WINOGROUND = four_way(
    "winoground",
    "winoground/examples.jsonl",
    read_winoground,
    400,
    about="two images and two captions of the same words in another order",
    source="huggingface.co/datasets/facebook/winoground (data/examples.jsonl, images.zip), once its terms are accepted",
    licence="Meta's research licence; not to be passed on",
)
BENCHMARK_COLORSWAP = four_way(
    "colorswap",
    "colorswap/test.json",
    read_colorswap,
    300,
    about="two images and two captions in which colours have changed places",
    source="github.com/Top34051/colorswap (test.json, images.zip), or huggingface.co/datasets/stanfordnlp/colorswap",
    licence="MIT",
)
BENCHMARK_BIVLC = four_way(
    "bivlc",
    "bivlc/test.jsonl",
    read_bivlc,
    2933,
    about="a photograph and a generated image with their captions, of which each is the other's hard negative",
    source="huggingface.co/datasets/imirandam/BiVLC (parquet)",
    licence="MIT; images: Flickr's terms, see COCO",
    published={"CLIP ViT-B/32, OpenAI": {"text": 75.8, "image": 52.4, "group": 49.1}},
)
BENCHMARK_COLA = four_way(
    "cola",
    "cola/COLA_multiobjects_matching_benchmark.json",
    read_cola,
    210,
    about="two photographs whose objects have each other's attributes, and a caption of each",
    source="github.com/arijitray1993/COLA (data/, whose addresses name Visual Genome's images)",
    licence="MIT; images: Visual Genome, CC BY 4.0",
    shows=partial(file_numbers, VISUAL_GENOME),
)
