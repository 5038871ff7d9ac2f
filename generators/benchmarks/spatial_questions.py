"""COCO-spatial and GQA-spatial of What'sUp (Kamath et al. 2023): the place of one or two things in a photograph.

Each record has a true caption and its opposite.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import first_of_best
from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_json_rows

SOURCE = "github.com/amitakamath/whatsup_vlms (links to its data in the README)"


class SpatialQuestions(Photographs):
    """Spatial questions; the groups are questions about one thing and about two, whose mean is their table 1."""

    figures = ("macro over one object and two", "micro")


def questions(
    name: str,
    files: Mapping[str, str],
    images: str,
    file_name: Callable[[int], str],
    counts: Mapping[str, int],
    collection: str,
) -> BenchmarkSpec:
    """The spec of a benchmark of spatial questions. Each group has a file in `files`, with rows of image, true caption
    and false caption.

    Rows give an image by its number in `collection`; `file_name` turns the number into the name of the image's file.
    """

    def build(place: Place) -> SpatialQuestions:
        records = [
            Record(f"{group} {row.place}", group, (Photograph(file_name(image)),), texts, str(image))
            for group, file in files.items()
            for row in read_json_rows(place.path(file), 3)
            for image, texts in [(row.whole_number(0), (row.text(1), row.text(2)))]
        ]
        return SpatialQuestions(name, images, records, place, first_of_best)

    def shown(path: Path) -> Iterator[PhotographId]:
        return (PhotographId(collection, row.whole_number(0)) for row in read_json_rows(path, 3))

    return BenchmarkSpec(
        name=name,
        about="a true caption of where things are in a photograph, and its opposite",
        files=tuple(files.values()),
        images=(images,),
        source=SOURCE,
        licence="MIT; images: see COCO and Visual Genome",
        build=build,
        photographs=shown,
        counts=counts,
    )


COCO_FILES = {"two objects": "whatsup/coco_qa_two_obj.json", "one object": "whatsup/coco_qa_one_obj.json"}

BENCHMARK_COCO_SPATIAL = questions(
    "coco-spatial",
    COCO_FILES,
    "coco/val2017",
    lambda image: f"{image:012d}.jpg",
    {"two objects": 440, "one object": 2247},
    COCO,
)


GQA_FILES = {"two objects": "whatsup/vg_qa_two_obj.json", "one object": "whatsup/vg_qa_one_obj.json"}

BENCHMARK_GQA_SPATIAL = questions(
    "gqa-spatial",
    GQA_FILES,
    "gqa/vg_images",
    lambda image: f"{image}.jpg",
    {"two objects": 291, "one object": 1160},
    VISUAL_GENOME,
)
