"""SugarCrepe (Hsieh et al. 2023, "SugarCrepe: Fixing hackable benchmarks for vision-language compositionality"), and
SugarCrepe++ (Dumpala et al. 2024).

Files of captions of COCO val2017 images. SugarCrepe has seven, each caption with one hard negative: an image is right
if its caption scores strictly higher. SugarCrepe++ has five of them, each caption with a paraphrase that is also true:
an image is right if both true captions score strictly higher than the false one (the paper's image-to-text task).
Chance is 1/3. The text-only task is missing, because it compares texts with each other.

There are two overall accuracies: over all records (micro), as SugarCrepe's paper reports, and the mean of the files
(macro), as SPARO's paper reports; SugarCrepe++'s paper reports the files alone.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Outcome, Scores, texts_chosen
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import COCO, file_numbers
from menagerie.generators.sources.rows import FileRow, read_entries

COUNTS = {
    **{"add_att": 692, "add_obj": 2062},
    **{"replace_att": 788, "replace_obj": 1652, "replace_rel": 1406},
    **{"swap_att": 666, "swap_obj": 245},
}
PLUS_COUNTS = {name: count for name, count in COUNTS.items() if not name.startswith("add")}
IMAGES = "coco/val2017"
FIGURES = ("micro", "macro")


def read_sugarcrepe(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file. They keep the file's keys, which have gaps in swap_obj."""
    for entry in read_entries(path, dict):
        yield record_with_texts(entry, f"{part} {entry.place}", part, "caption", "negative_caption")


def record_with_texts(entry: FileRow, name: str, part: str, *texts: str) -> Record:
    """A record with the texts under some keys; records of one photograph form a cluster."""
    image = entry.text("filename")
    return Record(name, part, (Photograph(image),), tuple(map(entry.text, texts)), image)


BENCHMARK = benchmark_of_files(
    "sugarcrepe",
    {name: f"sugarcrepe/{name}.json" for name in COUNTS},
    read_sugarcrepe,
    IMAGES,
    kind=partial(ItemBenchmark, figures=FIGURES),
    shows=partial(file_numbers, COCO),
    about="captions with an attribute (att), an object (obj) or a relation (rel) added, replaced or swapped",
    source="github.com/RAIVNLab/sugar-crepe (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="MIT; images: Flickr's terms, see COCO",
    counts=COUNTS,
)


def read_sugarcrepe_pp(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file of SugarCrepe++."""
    for entry in read_entries(path, list):
        name = f"{part} {entry.field('id', int)}"
        yield record_with_texts(entry, name, part, "caption", "caption2", "negative_caption")


def both_above(scores: Scores) -> Outcome:
    """Whether both of two true texts score higher than a false one; the neutral accuracy breaks ties at random."""
    return texts_chosen(scores, 2)


BENCHMARK_SUGARCREPE_PP = benchmark_of_files(
    "sugarcrepe-pp",
    {name: f"sugarcrepe_pp/{name}.json" for name in PLUS_COUNTS},
    read_sugarcrepe_pp,
    IMAGES,
    kind=partial(ItemBenchmark, rules=both_above, figures=FIGURES, true_texts=2),
    shows=partial(file_numbers, COCO),
    about="two captions that say the same, and one of nearly the same words that doesn't",
    source="github.com/Sri-Harsha/scpp (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="CC BY 4.0; images: Flickr's terms, see COCO",
    counts=PLUS_COUNTS,
)
