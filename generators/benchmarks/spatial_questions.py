"""Questions of place on COCO and GQA images (Kamath et al. 2023), which two benchmarks share: a true caption and its
opposite, of one thing in the picture or of two. Counts are from memory, see docs/transfer.md."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from generators.benchmarks.benchmark import first_of_best
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.json_file import read_json_rows
from generators.sources.kept_out import PhotographId

SOURCE = "github.com/amitakamath/whatsup_vlms (links to its data in the README)"


def questions(
    name: str,
    files: Mapping[str, str],
    images: str,
    file_name: Callable[[int], str],
    counts: Mapping[str, int],
    collection: str,
) -> BenchmarkSpec:
    """A benchmark of such questions: `files` by group, rows of image, true caption and false one;
    images are numbered as in `collection`."""

    def build(place: Place) -> Photographs:
        records = [
            Record(f"{group} {row.place}", group, (Photograph(file_name(image)),), texts, str(image))
            for group, file in files.items()
            for row in read_json_rows(place.path(file), 3)
            for image, texts in [(row.whole_number(0), (row.text(1), row.text(2)))]
        ]
        return Photographs(name, place.path(images), records, place, first_of_best)

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
