"""PUG:SPARE (Koishigarina et al. 2025, "CLIP behaves like a bag-of-words model cross-modally but not uni-modally").

PUG:SPAR without its positional shortcuts: 12 animals in 8 textures on 4 backgrounds. Captions are the authors'; false
ones exchange the textures; scoring is strict. The authors score only a tenth of the images, which they don't train on;
here all are scored. The number of images isn't known for sure.
"""

from collections.abc import Iterator

from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_csv

FILE, FOLDER = "pug_spare/PUG_SPARE.csv", "pug_spare"
WORLD, ANIMALS = "world_name", ("character_name", "character2_name")
TEXTURES = ("character_texture", "character2_texture")
CAPTION = "{} {} and {} {}"


def build(place: Place) -> Photographs:
    """Build the benchmark from all pictures, grouped by background."""
    rows = read_csv(place.path(FILE), ("filename", WORLD, *ANIMALS, *TEXTURES))
    return Photographs("pug-spare", FOLDER, [record for row in rows for record in records_of(row)], place)


def records_of(row: Row) -> Iterator[Record]:
    """Yield the record of a line; none if the two animals, or the two textures, are equal."""
    a, b = map(row.text, ANIMALS)
    first, second = map(row.text, TEXTURES)
    if a != b and first != second:
        world, cluster = row.text(WORLD), " + ".join(sorted((a, b)))
        texts = (CAPTION.format(first, a, second, b), CAPTION.format(second, a, first, b))
        image = Photograph(f"{world}/{row.text('filename')}")
        yield Record(image.file, world, (image,), texts, cluster)


BENCHMARK = BenchmarkSpec(
    name="pug-spare",
    about="two animals of a game engine, their textures exchanged in the false caption",
    files=(FILE,),
    images=(FOLDER,),
    source="github.com/kdariina/CLIP-not-BoW-unimodally (links in its README)",
    licence="not stated; not for generative AI",
    build=build,
    photographs=None,
)
