"""SugarCrepe (Hsieh et al. 2023, "SugarCrepe: Fixing hackable benchmarks for vision-language compositionality").

Seven files of captions of COCO val2017 images, each with one hard negative. An image is right if its caption scores
strictly higher.
"""

from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import COCO, named_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_json

COUNTS = {
    "add_att": 692,
    "add_obj": 2062,
    "replace_att": 788,
    "replace_obj": 1652,
    "replace_rel": 1406,
    "swap_att": 666,
    "swap_obj": 245,
}
FOLDER, IMAGES = "sugarcrepe", "coco/val2017"


class SugarCrepe(Photographs):
    """SugarCrepe, with two overall accuracies: over all records (micro), as its paper reports, and the mean of its
    seven files (macro), as SPARO's paper reports."""

    figures = ("micro", "macro")


def build(place: Place) -> SugarCrepe:
    """Build the benchmark from all seven files. Records keep the files' keys, which have gaps in swap_obj."""
    records = [record for name in COUNTS for record in read_part(place, name)]
    return SugarCrepe("sugarcrepe", IMAGES, records, place)


def read_part(place: Place, name: str) -> list[Record]:
    records = []
    for entry in read_json(place.path(f"{FOLDER}/{name}.json")).rows():
        texts = tuple(entry.text(key) for key in ("caption", "negative_caption"))
        image = Photograph(entry.text("filename"))
        records.append(Record(f"{name} {entry.place}", name, (image,), texts, image.file))
    return records


BENCHMARK = BenchmarkSpec(
    name="sugarcrepe",
    about="captions with an attribute (att), an object (obj) or a relation (rel) added, replaced or swapped",
    files=tuple(f"{FOLDER}/{name}.json" for name in COUNTS),
    images=(IMAGES,),
    source="github.com/RAIVNLab/sugar-crepe (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="MIT; images: Flickr's terms, see COCO",
    build=build,
    photographs=named_in(COCO, lambda path: read_json(path).rows(), "filename"),
    counts=COUNTS,
)
