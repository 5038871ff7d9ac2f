"""Retrieval on COCO val2017, whose images many have: other images than Karpathy's test split, so other figures."""

from collections.abc import Iterator
from pathlib import Path

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.retrieval import Retrieval, records_of
from menagerie.generators.sources.coco import read_photographs
from menagerie.generators.sources.kept_out import COCO, PhotographId, file_numbers

FILE, IMAGES = "coco/annotations/captions_val2017.json", "coco/val2017"


def build(place: Place) -> Retrieval:
    """All images of its file."""
    photographs = read_photographs(place.path(FILE))
    records = records_of((photograph.file, tuple(photograph.texts)) for photograph in photographs)
    return Retrieval("retrieval-coco-val2017", IMAGES, records, place)


def shown(path: Path) -> Iterator[PhotographId]:
    """Its photographs."""
    return file_numbers(COCO, path, (photograph.file for photograph in read_photographs(path)))


BENCHMARK = BenchmarkSpec(
    name="retrieval-coco-val2017",
    about="which of all captions is an image's, and which of all images a caption's: COCO val2017",
    files=(FILE,),
    images=(IMAGES,),
    source="cocodataset.org, 2017 Val images and 2017 Train/Val annotations",
    licence="captions CC BY 4.0; images: Flickr's terms, see COCO",
    build=build,
    photographs=shown,
    counts={"all": 5000},
)
