"""ColorSwap (Burapacheep et al. 2024): two images and two captions in which colours have changed places.

Only the test split is used, 300 of 1000 records. The rules are Winoground's; the authors evaluate image-text models in
a notebook that we haven't read.
"""

from menagerie.generators.benchmarks.four_way import RULES, FourWay, Quad, below_images
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json_lines, read_json_list

LIST, LINES, IMAGES = "colorswap/test.json", "colorswap/test.jsonl", "colorswap/images"


def build(place: Place) -> FourWay:
    """Build the benchmark from the authors' list, or from a file with one JSON object per line."""
    whole, lines = place.path(LIST), place.path(LINES)
    entries = read_json_lines(lines) if lines.is_file() and not whole.is_file() else read_json_list(whole)
    return FourWay("colorswap", IMAGES, list(map(quad_of, entries)), place)


def quad_of(entry: Row) -> Quad:
    return Quad(
        name=str(entry.field("id", int)),
        images=(below_images(entry.text("image_1")), below_images(entry.text("image_2"))),
        texts=(entry.text("caption_1"), entry.text("caption_2")),
    )


BENCHMARK = BenchmarkSpec(
    name="colorswap",
    about="two images and two captions in which colours have changed places",
    files=(),
    one_of=(LIST, LINES),
    images=(IMAGES,),
    source="github.com/Top34051/colorswap (test.json, images.zip), or huggingface.co/datasets/stanfordnlp/colorswap",
    licence="MIT",
    build=build,
    photographs=None,
    counts=dict.fromkeys(RULES, 300),
)
