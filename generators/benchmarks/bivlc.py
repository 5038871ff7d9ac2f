"""BiVLC (Miranda et al. 2024): SugarCrepe's true and false captions of COCO images, and a generated image for each
false one.

Scoring is strict in both directions: the paper's I2T is Winoground's text score, its T2I the image score. The Hugging
Face hub has the data set as parquet; here it is read from a file with one JSON object per line, with image paths
relative to `images`.
"""

from menagerie.generators.benchmarks.four_way import RULES, FourWay, Quad, below_images
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json_lines

FILE, IMAGES = "bivlc/test.jsonl", "bivlc/images"


def build(place: Place) -> FourWay:
    """Build the benchmark from its file; its parts are SugarCrepe's edits: replace, swap, add."""
    entries = read_json_lines(place.path(FILE))
    return FourWay("bivlc", IMAGES, [quad_of(number, entry) for number, entry in enumerate(entries)], place)


def quad_of(number: int, entry: Row) -> Quad:
    """Read one record. Its name is its position in the file, which gives no names."""
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
    photographs=None,  # all images are of val2017, which training leaves out as a whole
    counts=dict.fromkeys(RULES, 2933),
    published={"CLIP ViT-B/32, OpenAI": {"text": 75.8, "image": 52.4, "group": 49.1}},
)
