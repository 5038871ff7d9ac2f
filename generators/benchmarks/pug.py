"""Two objects in colours, textures or places of their own, which the false caption exchanges: PUG and NCD.

PUG:SPAR (Bordes et al. 2023, "PUG: Photorealistic and semantically controllable synthetic data") shows two different
animals of a game engine, Unreal, beside or above one another, with natural looks or in two textures. The tests are the
official ones with hard negatives: of places, for animals with natural looks, and of textures, for animals in any
places. Captions use the table's own words; each world is reported too. Pictures of two animals in one place or texture,
or with the two places or textures in the other order aren't tested. Officially ties are broken at random. `pug_worlds`
has the tests of scenes and of single animals.

PUG:SPARE (Koishigarina et al. 2025, "CLIP behaves like a bag-of-words model cross-modally but not uni-modally") is
PUG:SPAR without its positional shortcuts: 12 animals in 8 textures on 4 backgrounds. Captions are the authors'; scoring
is strict. All images are scored, and those of the authors' test apart (`spare_test`). The number of images isn't known
for sure.

NCD has composites of natural objects in unusual colours, from the "Natural Colors Dataset", as the DCSM paper tests
them. Files have names such as "red_apple_green_pear.png". Captions name the left object first in one test and the right
object first in the other. As in that paper's code, mirrored images (MIRROR in capitals in their names) and files that
aren't images are skipped; "silver_mirror" is a normal object.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from random import Random
from reprlib import repr as shown

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Scores, Summary, first_of_shuffled, summarise
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record, summaries_by_tag
from menagerie.generators.benchmarks.registry import benchmark_of_files, benchmark_spec
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_csv

FOLDER = "pug_spar"  # as unpacked, images beside the table
ABSENT, DEFAULT = "blank", "default"
WORLD, ANIMALS = "world_name", ("character_name", "character2_name")
POSITIONS = ("character1_pos", "character2_pos")
TEXTURES = ("character_texture", "character2_texture")
COLUMNS = ("filename", WORLD, *ANIMALS, *POSITIONS, *TEXTURES)
PLACED = "This is a photo of a {} on the {} and a {} on the {} of the picture"
TEXTURED = "This is a photo of a {} textured with {} and a {} textured with {}"
# The first animal's place or texture -> the task of the test.
PAIRS = {
    POSITIONS: {"left": "left/right", "bottom": "bottom/top"},
    TEXTURES: {"blue": "blue/red", "grass": "grass/stone"},
}
KNOWN = {POSITIONS: ("left", "right", "bottom", "top"), TEXTURES: (DEFAULT, "blue", "red", "grass", "stone")}


class PugSpar(ItemBenchmark):
    """PUG:SPAR; tasks are pairs of places or of textures."""

    figures, as_stored = (), True

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """Score an item; ties are broken at random, with the record as seed."""
        return first_of_shuffled(scores, item.record)

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The tasks, and those of each world."""
        tags = {record.name: record.tags for record in self.records}
        return {**super().headlines(items, outcomes), **summaries_by_tag(items, outcomes, tags)}


def read_spar(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of the table's lines that are tests; raises for unknown places or textures."""
    for row in read_csv(path, COLUMNS):
        a, b = (cell(row, column) for column in ANIMALS)
        if not a or not b or a == b:
            continue
        first, second = known_values(row, TEXTURES)
        columns, template = TEXTURES, TEXTURED
        if first.lower() == DEFAULT:
            (first, second), columns, template = known_values(row, POSITIONS), POSITIONS, PLACED
        if (task := PAIRS[columns].get(first.lower())) and first.lower() != second.lower():
            image, world = row.text("filename"), cell(row, WORLD)
            texts = template.format(a, first, b, second), template.format(b, first, a, second)
            yield Record(
                f"{task} {image}", task, (Photograph(image),), texts, " + ".join(sorted((a, b))), (world,) * bool(world)
            )


def known_values(row: FileRow, columns: tuple[str, str]) -> tuple[str, str]:
    """The places, or the textures, of a line's two animals."""
    for column in columns:
        if cell(row, column).lower() not in (known := KNOWN[columns]):
            raise row.error(f"has a {column!r} that is none of {', '.join(known)}: {shown(row.content[column])}")
    first, second = (cell(row, column) for column in columns)
    return first, second


def cell(row: FileRow, column: str) -> str:
    """The text in a row's column; "" if there is no value."""
    text = " ".join(row.content[column].split())
    return "" if text.lower() == ABSENT else text


BENCHMARK_PUG_SPAR = benchmark_of_files("pug-spar", {"": f"{FOLDER}/labels.csv"}, read_spar, FOLDER, kind=PugSpar)


SPARE, SPARE_FOLDER = "pug_spare/PUG_SPARE.csv", "pug_spare"
TEST = "the authors' test"
Composition = tuple[str, str, str, str]  # a texture, its animal, another texture, its animal


def spare_test(animals: Sequence[str], textures: Sequence[str]) -> Counter[Composition]:
    """How often the authors' test has each composition: train_val_test_split and extend_test_indices in
    alignment/pug_alignment_utils.py of their code. They draw a tenth of half of the compositions and add the three
    exchanges of each, 1416 of 7392 in all; what is drawn with an exchange of its own counts twice."""
    kept: dict[Composition, None] = {}
    for first, a, second, b in product(textures, animals, textures, animals):
        known = (first, b, second, a) in kept or (second, a, first, b) in kept
        if a != b and first != second and not known:
            kept[first, a, second, b] = None
    drawn = Random(42).sample(list(kept), len(kept) // 10)
    every = (
        ((first, a, second, b), (second, b, first, a), (second, a, first, b), (first, b, second, a))
        for first, a, second, b in drawn
    )
    return Counter(chain.from_iterable(every))


def read_spare(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of PUG:SPARE: all pictures whose two animals and two textures differ, grouped by background."""
    rows = read_csv(path, ("filename", WORLD, *ANIMALS, *TEXTURES))
    animals, textures = (list(dict.fromkeys(row.text(name[0]) for row in rows)) for name in (ANIMALS, TEXTURES))
    test = spare_test(animals, textures)
    for row in rows:
        (a, b), (first, second) = map(row.text, ANIMALS), map(row.text, TEXTURES)
        if a != b and first != second:
            image, world = f"{row.text(WORLD)}/{row.text('filename')}", row.text(WORLD)
            texts = (f"{first} {a} and {second} {b}", f"{second} {a} and {first} {b}")
            tags = (TEST,) * test[first, a, second, b]
            yield Record(image, world, (Photograph(image),), texts, " + ".join(sorted((a, b))), tags)


class PugSpare(ItemBenchmark):
    """PUG:SPARE, and the authors' test of it."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        times = {(record.name, record.task): len(record.tags) for record in self.records}
        its = [one for item, one in zip(items, outcomes, strict=True) for _ in range(times[item.record, item.task])]
        return {**super().headlines(items, outcomes), **({TEST: summarise(its)} if its else {})}


BENCHMARK_PUG_SPARE = benchmark_of_files("pug-spare", {"": SPARE}, read_spare, SPARE_FOLDER, kind=PugSpare)


NCD_FOLDER = "ncd/images"
IMAGE = re.compile(r"(?!.*MIRROR).+\.(?i:png|jpe?g|webp)", re.DOTALL)
NAME = re.compile(r"(?P<c1>[^_]+)_(?P<a>[^_]+)_(?P<c2>[^_]+)_(?P<b>[^_]+)\.\w+")
LEFT, RIGHT = "swap", "swap, right first"  # subsets 1 and 2 of the paper's code
CAPTION = "A picture of a {} {} and a {} {}"


def build_ncd(place: Place) -> ItemBenchmark:
    """All composites of the folder but those with two equal colours; each order of mention is a task."""
    folder = place.only(NCD_FOLDER)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; make the composites, or name where they are")
    records = []
    for file in sorted(filter(IMAGE.fullmatch, files_in(folder))):
        parts = NAME.fullmatch(file)
        if parts is None:
            raise UserError(f"{file!r} in {folder} isn't called COLOUR_OBJECT_COLOUR_OBJECT.png; take it out")
        c1, a, c2, b = (parts[name].replace("-", " ") for name in ("c1", "a", "c2", "b"))
        if c1 != c2:
            cluster = " ".join(sorted((a, b)))
            left_first = CAPTION.format(c1, a, c2, b), CAPTION.format(c2, a, c1, b)
            right_first = CAPTION.format(c2, b, c1, a), CAPTION.format(c1, b, c2, a)
            records.append(Record(file, LEFT, (Photograph(file),), left_first, cluster))
            records.append(Record(file, RIGHT, (Photograph(file),), right_first, cluster))
    return ItemBenchmark("ncd", NCD_FOLDER, records, place, figures=())


BENCHMARK_NCD = benchmark_spec("ncd", build_ncd, (NCD_FOLDER,))
