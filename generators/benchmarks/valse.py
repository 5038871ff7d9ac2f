"""VALSE (Parcalabescu et al. 2022): a caption and a foil that differ in one linguistic phenomenon, eleven files.

As in the authors' code, a record is scored only if at least two of three annotators chose the caption alone. An image
is right if its caption scores strictly higher: the paper's pairwise accuracy, averaged over the eleven files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, coco_number, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json

FOLDER, IMAGES = "valse/data", "valse/images"
COUNTS: Mapping[str, int] = {
    **{"existence": 505, "plurals": 851},
    **{"counting-hard": 868, "counting-small-quant": 900, "counting-adversarial": 691},
    **{"relations": 535, "action-replacement": 648, "actant-swap": 949},
    **{"coreference-standard": 708, "coreference-hard": 104, "foil-it": 943},
}
VOTES = 2  # of three annotators
VISUAL7W = "v7w_"  # prefix of the numbers that Visual Genome gives Visual7W's photographs


class Valse(Photographs):
    """VALSE; groups are its files, whose mean the paper reports."""

    figures = ("macro", "micro")


def build(place: Place) -> Valse:
    """Build the benchmark from all files' records that annotators confirmed (`confirmed`)."""
    records = [record for name in COUNTS for record in read_part(place, name)]
    return Valse("valse", IMAGES, records, place)


def read_part(place: Place, name: str) -> Iterator[Record]:
    for entry in confirmed(place.path(f"{FOLDER}/{name}.json")):
        image = Photograph(entry.text("image_file"))
        yield Record(f"{name} {entry.place}", name, (image,), (entry.text("caption"), entry.text("foil")), image.file)


def confirmed(path: Path) -> Iterator[Row]:
    """Yield the records of a file for which enough annotators chose the caption."""
    for entry in read_json(path).rows():
        if entry.inside("mturk").number("caption") >= VOTES:
            yield entry


def shown(path: Path) -> Iterator[PhotographId]:
    """The photographs of COCO and Visual Genome in one file; images of SWiG, and VisDial's own, are in neither."""
    files = [entry.text("image_file") for entry in confirmed(path)]
    yield from file_numbers(VISUAL_GENOME, path, (f.removeprefix(VISUAL7W) for f in files if f.startswith(VISUAL7W)))
    yield from filter(None, map(coco_number, (file for file in files if not file.startswith("VisualDialog"))))


BENCHMARK = BenchmarkSpec(
    name="valse",
    about="existence, plurals, numbers, relations, actions or coreference, changed in the false caption",
    files=tuple(f"{FOLDER}/{name}.json" for name in COUNTS),
    images=(IMAGES,),
    source="github.com/Heidelberg-NLP/VALSE (data/*.json); images: Visual7W, COCO 2014 and 2017, SWiG, VisDial",
    licence="MIT; images: as of each set",
    build=build,
    photographs=shown,
    counts=COUNTS,
)
