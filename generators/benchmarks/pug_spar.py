"""PUG:SPAR (Bordes et al. 2023, "PUG: Photorealistic and semantically controllable synthetic data"): animals of Unreal.

Two animals beside or above one another, in two textures; captions in the words of its appendix, swapped for hard
negatives. One animal alone is no test here.
"""

from collections.abc import Iterator

from generators.benchmarks.photographs import Photograph, Photographs, Place, Record
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.csv_file import Row, read_csv

TABLE, IMAGES = "pug_spar/labels.csv", "pug_spar/images"
ABSENT = "blank"
ANIMALS = ("character_name", "character2_name")
PLACES = ("character1_pos", "character2_pos")
TEXTURES = ("character_texture", "character2_texture")
COLUMNS = ("filename", "world_name", *ANIMALS, *PLACES, *TEXTURES)
PLACED = "This is a photo of a {} on the {} and a {} on the {} of the picture"
TEXTURED = "This is a photo of a {} textured with {} and a {} textured with {}"


def build(place: Place) -> Photographs:
    """All pictures of two different animals, by place and, where they have two textures, by texture."""
    records = [record for row in read_csv(place.path(TABLE), COLUMNS) for record in records_of(row)]
    return Photographs("pug-spar", place.path(IMAGES), records, place)


def records_of(row: Row) -> Iterator[Record]:
    """The tests of a line."""
    a, b = (word(row, column) for column in ANIMALS)
    if not a or not b or a == b:
        return
    image, cluster = Photograph(row.text("filename")), " + ".join(sorted((a, b)))
    for group, columns, template in (("place", PLACES, PLACED), ("texture", TEXTURES, TEXTURED)):
        first, second = (word(row, column) for column in columns)
        if first and second and first != second:
            texts = (template.format(a, first, b, second), template.format(a, second, b, first))
            yield Record(f"{group} {image.file}", group, (image,), texts, cluster)


def word(row: Row, column: str) -> str:
    """What a column names, in small letters; "" for what is absent."""
    text = row.cells[column].strip().replace("_", " ").lower()
    return "" if text == ABSENT else text


BENCHMARK = BenchmarkSpec(
    name="pug-spar",
    about="two animals of a game engine, their places or textures exchanged in the false caption",
    files=(TABLE,),
    images=(IMAGES,),
    source="github.com/facebookresearch/PUG",
    licence="CC BY-NC 4.0",
    build=build,
    photographs=None,
)
