"""What'sUp (Kamath et al. 2023): two objects, photographed in four arrangements; and COCO-spatial and GQA-spatial.

In What'sUp's set A an object is on, under, left or right of furniture. Set B shows two objects on a table from the
front. COCO-spatial and GQA-spatial ask for the place of one or two objects in a photograph: each record has a true
caption and its opposite. Officially the first of equal scores wins."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, all_right, first_of_best, summarise
from menagerie.generators.benchmarks.photographs import (
    ItemBenchmark,
    Photograph,
    Record,
    group_by_task,
    macro_mean,
    summaries_by_task,
)
from menagerie.generators.benchmarks.registry import BenchmarkSpec, benchmark_of_files
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME
from menagerie.generators.sources.rows import read_entries, read_lists

PARTS = {"A": "controlled_images", "B": "controlled_clevr"}
# Opposites have the same number, so that an arrangement and its opposite are a pair.
AXES = {"left_of": 0, "right_of": 0, "on": 1, "under": 1, "in-front_of": 1, "in_front_of": 1, "behind": 1}
NAME = re.compile(rf"(?P<first>.+)_(?P<arrangement>{'|'.join(AXES)})_(?P<second>.+)\.\w+")


class WhatsUp(ItemBenchmark):
    """What'sUp. The first of four captions is true."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """Accuracy on pairs of opposites and on sets of four, which are right if all their images are; and the mean of
        the accuracies on single images of A and of B, as in the authors' table 1."""
        found = {"macro over A and B": macro_mean(list(summaries_by_task(items, outcomes).values()))}
        for task in self.tasks:
            for kind, name in (("pairs", pair_of), ("sets", attrgetter("cluster"))):
                sets = group_by_task(items, outcomes, name)
                own = [all_right(its) for key, its in sets.items() if key.startswith(f"{task} ")]
                found[f"{task} {kind}"] = summarise(own)
        return found


def pair_of(item: Item) -> str:
    """The pair of opposite arrangements that an item belongs to."""
    return f"{item.cluster} {AXES[item.record.rpartition(' ')[2]]}"


def read_arrangements(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file; the folders in images' paths are ignored."""
    for entry in read_entries(path, list):
        name = entry.file_name("image_path")
        parts = NAME.fullmatch(name)
        if parts is None:
            raise entry.error(f"has an 'image_path' that states no arrangement: {name!r}")
        objects, image = f"{parts['first']} {parts['second']}", Photograph(f"{PARTS[part]}/{name}")
        texts = entry.texts("caption_options", 4)
        yield Record(f"{objects} {parts['arrangement']}", part, (image,), texts, f"{part} {objects}")


BENCHMARK = benchmark_of_files(
    "whatsup",
    {part: f"whatsup/{name}_dataset.json" for part, name in PARTS.items()},
    read_arrangements,
    "whatsup",
    kind=partial(WhatsUp, rules=first_of_best),
    folders=tuple(f"whatsup/{name}" for name in PARTS.values()),
)


def spatial_questions(
    name: str, stem: str, images: str, file_name: Callable[[int], str], collection: str
) -> BenchmarkSpec:
    """The spec of a benchmark of questions about two objects and about one, whose mean is the authors' table 1. Rows of
    its files give an image by its number in `collection`, which `file_name` turns into the name of its file."""
    files = {f"{count} object{'s' * (count == 'two')}": f"whatsup/{stem}_{count}_obj.json" for count in ("two", "one")}

    def read(path: Path, task: str) -> Iterator[Record]:
        for row in read_lists(path, 3):
            number, texts = row.whole_number(0), (row.text(1), row.text(2))
            yield Record(f"{task} {row.place}", task, (Photograph(file_name(number)),), texts, str(number))

    return benchmark_of_files(
        name,
        files,
        read,
        images,
        kind=partial(ItemBenchmark, rules=first_of_best, figures=("macro over one object and two", "micro")),
        shows=collection,
    )


BENCHMARK_COCO_SPATIAL = spatial_questions("coco-spatial", "coco_qa", "coco/val2017", "{:012d}.jpg".format, COCO)
BENCHMARK_GQA_SPATIAL = spatial_questions("gqa-spatial", "vg_qa", "gqa/vg_images", "{}.jpg".format, VISUAL_GENOME)
