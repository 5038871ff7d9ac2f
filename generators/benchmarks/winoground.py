"""Winoground (Thrush et al. 2022): two images and two captions, each true of one.

400 records; both captions have the same words. Access is gated, for research only.
"""

from menagerie.generators.benchmarks.four_way import RULES, FourWay, Quad
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, is_text, read_json_lines

FILE, IMAGES = "winoground/examples.jsonl", "winoground/images"
TAGS = ("collapsed_tag", "secondary_tag")


def build(place: Place) -> FourWay:
    """Build the benchmark from its file; parts are the tags of the paper's table 2."""
    return FourWay("winoground", IMAGES, [quad_of(entry) for entry in read_json_lines(place.path(FILE))], place)


def quad_of(entry: Row) -> Quad:
    """Read one record, with its tags."""
    return Quad(
        name=str(entry.field("id", int)),
        images=(f"{entry.text('image_0')}.png", f"{entry.text('image_1')}.png"),
        texts=(entry.text("caption_0"), entry.text("caption_1")),
        parts=tuple(tag for key in TAGS if is_text(tag := entry.content.get(key))),
    )


BENCHMARK = BenchmarkSpec(
    name="winoground",
    about="two images and two captions of the same words in another order",
    files=(FILE,),
    images=(IMAGES,),
    source="huggingface.co/datasets/facebook/winoground (data/examples.jsonl, images.zip), once its terms are accepted",
    licence="Meta's research licence; not to be passed on",
    build=build,
    photographs=None,
    counts=dict.fromkeys(RULES, 400),
)
