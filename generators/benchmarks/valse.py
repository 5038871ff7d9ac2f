"""VALSE (Parcalabescu et al. 2022): a caption and a foil that differ in one linguistic phenomenon, eleven files.

As in the authors' code, a record is scored only if at least two of three annotators chose the caption alone. An image
is right if its caption scores strictly higher: the paper's pairwise accuracy, averaged over the eleven files.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, coco_number, file_numbers
from menagerie.generators.sources.rows import read_entries

COUNTS = {
    **{"existence": 505, "plurals": 851},
    **{"counting-hard": 868, "counting-small-quant": 900, "counting-adversarial": 691},
    **{"relations": 535, "action-replacement": 648, "actant-swap": 949},
    **{"coreference-standard": 708, "coreference-hard": 104, "foil-it": 943},
}
VOTES = 2  # of three annotators
VISUAL7W = "v7w_"  # prefix of the numbers that Visual Genome gives Visual7W's photographs


def read_confirmed(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file for which enough annotators chose the caption."""
    for entry in read_entries(path, dict):
        if entry.inside("mturk").number("caption") >= VOTES:
            image = entry.text("image_file")
            texts = (entry.text("caption"), entry.text("foil"))
            yield Record(f"{part} {entry.place}", part, (Photograph(image),), texts, image)


def valse_photographs(path: Path, images: Iterable[str]) -> Iterator[PhotographId]:
    """The photographs of COCO and Visual Genome among images; those of SWiG, and VisDial's own, are in neither."""
    for image in images:
        if image.startswith(VISUAL7W):
            yield from file_numbers(VISUAL_GENOME, path, [image.removeprefix(VISUAL7W)])
        elif not image.startswith("VisualDialog") and (number := coco_number(image)):
            yield number


BENCHMARK = benchmark_of_files(
    "valse",
    {name: f"valse/data/{name}.json" for name in COUNTS},
    read_confirmed,
    "valse/images",
    kind=partial(ItemBenchmark, figures=("macro", "micro")),
    shows=valse_photographs,
    about="existence, plurals, numbers, relations, actions or coreference, changed in the false caption",
    source="github.com/Heidelberg-NLP/VALSE (data/*.json); images: Visual7W, COCO 2014 and 2017, SWiG, VisDial",
    licence="MIT; images: as of each set",
    counts=COUNTS,
)
