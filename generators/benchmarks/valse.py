"""VALSE (Parcalabescu et al. 2022): a caption and a foil that differ in one linguistic phenomenon, eleven files.

As in the authors' code, a record is scored only if at least two of three annotators chose the caption alone. An image
is right if its caption scores strictly higher: the paper's pairwise accuracy, averaged over the eleven files.
"""

from collections.abc import Iterator
from pathlib import Path

from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, coco_number, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_json_object

IMAGES = "valse/images"
COUNTS = {
    **{"existence": 505, "plurals": 851},
    **{"counting-hard": 868, "counting-small-quant": 900, "counting-adversarial": 691},
    **{"relations": 535, "action-replacement": 648, "actant-swap": 949},
    **{"coreference-standard": 708, "coreference-hard": 104, "foil-it": 943},
}
VOTES = 2  # of three annotators
VISUAL7W = "v7w_"  # prefix of the numbers that Visual Genome gives Visual7W's photographs


def build(place: Place) -> ItemBenchmark:
    """Build the benchmark from all files' records that annotators confirmed (`confirmed`); the paper reports the mean
    over files."""
    records = [
        Record(f"{name} {entry.place}", name, (Photograph(image),), (entry.text("caption"), entry.text("foil")), image)
        for name, file in zip(COUNTS, BENCHMARK.files, strict=True)
        for entry in confirmed(place.path(file))
        for image in [entry.text("image_file")]
    ]
    return ItemBenchmark("valse", IMAGES, records, place, figures=("macro", "micro"))


def confirmed(path: Path) -> list[FileRow]:
    """The records of a file for which enough annotators chose the caption."""
    return [entry for entry in read_json_object(path).rows() if entry.inside("mturk").number("caption") >= VOTES]


def valse_photographs(path: Path) -> Iterator[PhotographId]:
    """The photographs of COCO and Visual Genome in one file; images of SWiG, and VisDial's own, are in neither."""
    files = [entry.text("image_file") for entry in confirmed(path)]
    yield from file_numbers(VISUAL_GENOME, path, (f.removeprefix(VISUAL7W) for f in files if f.startswith(VISUAL7W)))
    yield from filter(None, map(coco_number, (file for file in files if not file.startswith("VisualDialog"))))


BENCHMARK = BenchmarkSpec(
    name="valse",
    about="existence, plurals, numbers, relations, actions or coreference, changed in the false caption",
    files=tuple(f"valse/data/{name}.json" for name in COUNTS),
    images=(IMAGES,),
    source="github.com/Heidelberg-NLP/VALSE (data/*.json); images: Visual7W, COCO 2014 and 2017, SWiG, VisDial",
    licence="MIT; images: as of each set",
    build=build,
    photographs=valse_photographs,
    counts=COUNTS,
)
