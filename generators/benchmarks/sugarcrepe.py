"""SugarCrepe (Hsieh et al. 2023, "SugarCrepe: Fixing hackable benchmarks for vision-language compositionality"), and
SugarCrepe++ (Dumpala et al. 2024).

Files of captions of COCO val2017 images. SugarCrepe has seven, each caption with one hard negative: an image is right
if its caption scores strictly higher. SugarCrepe++ has five of them, each caption with a paraphrase that is also true:
an image is right if both true captions score strictly higher than the false one (the paper's image-to-text task).
Chance is 1/3. The text-only task is missing, because it compares texts with each other.

There are two overall accuracies: over all records (micro), as SugarCrepe's paper reports, and the mean of the files
(macro), as SPARO's paper reports; SugarCrepe++'s paper reports the files alone.
"""

from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Outcome, Scores, true_above
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import COCO, numbers_under
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_json_list, read_json_object

COUNTS = {
    **{"add_att": 692, "add_obj": 2062},
    **{"replace_att": 788, "replace_obj": 1652, "replace_rel": 1406},
    **{"swap_att": 666, "swap_obj": 245},
}
PLUS_COUNTS = {name: count for name, count in COUNTS.items() if not name.startswith("add")}
IMAGES = "coco/val2017"
FIGURES = ("micro", "macro")


def build(place: Place) -> ItemBenchmark:
    """Build SugarCrepe. Records keep the files' keys, which have gaps in swap_obj."""
    records = [
        record_of(entry, Path(file).stem, entry.place, "caption", "negative_caption")
        for file in BENCHMARK.files
        for entry in entries_of(place.path(file))
    ]
    return ItemBenchmark("sugarcrepe", IMAGES, records, place, figures=FIGURES)


def entries_of(path: Path) -> list[FileRow]:
    return read_json_object(path).rows()


def record_of(entry: FileRow, part: str, number: object, *texts: str) -> Record:
    """A record with the texts under some keys; records of one photograph form a cluster."""
    image = entry.text("filename")
    return Record(f"{part} {number}", part, (Photograph(image),), tuple(map(entry.text, texts)), image)


BENCHMARK = BenchmarkSpec(
    name="sugarcrepe",
    about="captions with an attribute (att), an object (obj) or a relation (rel) added, replaced or swapped",
    files=tuple(f"sugarcrepe/{name}.json" for name in COUNTS),
    images=(IMAGES,),
    source="github.com/RAIVNLab/sugar-crepe (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="MIT; images: Flickr's terms, see COCO",
    build=build,
    photographs=numbers_under(COCO, entries_of, "filename"),
    counts=COUNTS,
)


def both_above(scores: Scores) -> Outcome:
    """Whether both of two true texts score higher than a false one; the neutral accuracy breaks ties at random."""
    return true_above(scores, 2)


def build_plus(place: Place) -> ItemBenchmark:
    """Build SugarCrepe++."""
    records = [
        record_of(entry, Path(file).stem, entry.field("id", int), "caption", "caption2", "negative_caption")
        for file in BENCHMARK_SUGARCREPE_PP.files
        for entry in read_json_list(place.path(file))
    ]
    return ItemBenchmark("sugarcrepe-pp", IMAGES, records, place, both_above, FIGURES, true_texts=2)


BENCHMARK_SUGARCREPE_PP = BenchmarkSpec(
    name="sugarcrepe-pp",
    about="two captions that say the same, and one of nearly the same words that doesn't",
    files=tuple(f"sugarcrepe_pp/{name}.json" for name in PLUS_COUNTS),
    images=(IMAGES,),
    source="github.com/Sri-Harsha/scpp (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="CC BY 4.0; images: Flickr's terms, see COCO",
    build=build_plus,
    photographs=numbers_under(COCO, read_json_list, "filename"),
    counts=PLUS_COUNTS,
)
