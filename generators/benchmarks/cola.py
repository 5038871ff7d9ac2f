"""Cola (Ray et al. 2023), multi-object setting: two photographs of Visual Genome, with attributes of two things
swapped.

The authors' accuracy is Winoground's image score: each caption must score its own photograph strictly higher. Text and
group score, which others report, are given too. The single-object setting, whose score is a mean average precision,
isn't implemented.
"""

from collections.abc import Iterator
from pathlib import Path

from menagerie.generators.benchmarks.four_way import RULES, FourWay, Quad
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json_rows

FILE, IMAGES = "cola/COLA_multiobjects_matching_benchmark.json", "cola/images"
ADDRESSES, CAPTIONS = (0, 2), (1, 3)


def build(place: Place) -> FourWay:
    return FourWay("cola", IMAGES, list(map(quad_of, read_json_rows(place.path(FILE), 4))), place)


def quad_of(row: Row) -> Quad:
    """Read one record; the last part of a photograph's address is the name of its file."""
    first, second = files_of(row)
    return Quad(row.place, (first, second), (row.text(CAPTIONS[0]), row.text(CAPTIONS[1])))


def files_of(row: Row) -> list[str]:
    """The names of the two photographs' files."""
    return [row.text(index).rpartition("/")[2] for index in ADDRESSES]


def shown(path: Path) -> Iterator[PhotographId]:
    return file_numbers(VISUAL_GENOME, path, (file for row in read_json_rows(path, 4) for file in files_of(row)))


BENCHMARK = BenchmarkSpec(
    name="cola",
    about="two photographs whose things have each other's attributes, and a caption of each",
    files=(FILE,),
    images=(IMAGES,),
    source="github.com/arijitray1993/COLA (data/, whose addresses name Visual Genome's images)",
    licence="MIT; images: Visual Genome, CC BY 4.0",
    build=build,
    photographs=shown,
    counts=dict.fromkeys(RULES, 210),
)
