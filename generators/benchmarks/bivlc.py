"""BiVLC (Miranda et al. 2024): a caption of COCO, SugarCrepe's false one, and a generated image of which that is true.

Strict, both ways: the paper's I2T is Winoground's text score, its T2I the image score. The data set is the hub's
parquet; read is the same as an object on each line, its images as paths below `images`.
"""

from menagerie.generators.benchmarks.four_way import RULES, FourWay, Quad, below_images
from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.json_file import Entry, read_json_lines

FILE, IMAGES = "bivlc/test.jsonl", "bivlc/images"


def build(place: Place) -> FourWay:
    """All records of its file, in parts by what SugarCrepe did: replace, swap, add."""
    entries = read_json_lines(place.path(FILE))
    return FourWay("bivlc", IMAGES, [quad_of(number, entry) for number, entry in enumerate(entries)], place)


def quad_of(number: int, entry: Entry) -> Quad:
    """Read one record and number it, because it has no name in the file."""
    return Quad(
        name=str(number),
        images=(below_images(entry.text("image")), below_images(entry.text("negative_image"))),
        texts=(entry.text("caption"), entry.text("negative_caption")),
        parts=(entry.text("type"),),
    )


BENCHMARK = BenchmarkSpec(
    name="bivlc",
    about="a photograph and a generated image with their captions, of which each is the other's hard negative",
    files=(FILE,),
    images=(IMAGES,),
    source="huggingface.co/datasets/imirandam/BiVLC (parquet)",
    licence="MIT; images: Flickr's terms, see COCO",
    build=build,
    photographs=None,  # all are val2017's, which training leaves out as a whole
    counts=dict.fromkeys(RULES, 2933),
    published={"CLIP ViT-B/32, OpenAI": {"text": 75.8, "image": 52.4, "group": 49.1}},
)
