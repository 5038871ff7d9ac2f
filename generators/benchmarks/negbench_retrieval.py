"""NegBench's retrieval (Alhamoud et al. 2025): COCO captions as they are, and with what isn't in the picture denied."""

from collections.abc import Iterator
from pathlib import Path

from menagerie.generators.benchmarks.negbench import IMAGES
from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.retrieval import Retrieval, records_of
from menagerie.generators.sources.csv_file import read_csv
from menagerie.generators.sources.kept_out import COCO, PhotographId, file_numbers

FILES = {
    "original": "negbench/COCO_val_retrieval.csv",
    "negated": "negbench/COCO_val_negated_retrieval_llama3.1_rephrased_affneg_true.csv",
}


def build(place: Place) -> Retrieval:
    """Both files, each a pool of its own."""
    records = [
        record
        for group, file in FILES.items()
        for record in records_of(
            (
                (row.text("filepath").rpartition("/")[2], tuple(row.literal_texts("captions")))
                for row in read_csv(place.path(file), ("filepath", "captions"))
            ),
            group,
        )
    ]
    return Retrieval("negbench-retrieval", IMAGES, records, place)


def shown(path: Path) -> Iterator[PhotographId]:
    """The photographs of a file."""
    return file_numbers(COCO, path, (row.text("filepath") for row in read_csv(path, ("filepath",))))


BENCHMARK = BenchmarkSpec(
    name="negbench-retrieval",
    about="which of all captions is an image's, and which of all images a caption's, when captions also deny",
    files=tuple(FILES.values()),
    images=(IMAGES,),
    source="github.com/m1k2zoo/negbench (links in its datasets.md); images of COCO val2017 in one folder",
    licence="MIT; images: see COCO",
    build=build,
    photographs=shown,
)
