"""PUG:SPAR's scenes and single animals, by PUG_SPAR/run_eval_vlms_on_spar.py of github.com/facebookresearch/PUG.

`pug-spar-scenes` chooses among all captions: of a background without an animal its world, of a single animal which it
is, in each kind of texture, or which it is and where. `pug-spar-places` chooses between two places of a single animal;
ties are broken at random, as in `pug-spar`. A number for all worlds stands beside those of each. Captions that name the
world too, the tests of two animals among all captions, and numbers of each world among the captions of that world alone
(the same where each world shows all animals) are missing.

Where the first animal is absent the table still has its texture and place, by which the authors choose pictures: their
captions of textures then have "a blank", and so have ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary
from menagerie.generators.benchmarks.class_folders import SLOT
from menagerie.generators.benchmarks.photographs import Photograph, Record, summaries_by_tag, summaries_by_task
from menagerie.generators.benchmarks.pug import ABSENT, ANIMALS, COLUMNS, FOLDER, POSITIONS, TEXTURES, WORLD, PugSpar
from menagerie.generators.benchmarks.registry import benchmark_of_files, benchmark_spec
from menagerie.generators.benchmarks.zero_shot import ImageSet, ZeroShot
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_csv

TABLE = f"{FOLDER}/labels.csv"
SCENE, ANIMAL = "This is a photo in a {} environment", "This is a photo of a {}"
PLACED = "This is a photo of a {} on the {} of the picture"
KINDS = ("Default", "Blue", "Grass")  # textures of the first animal
SCENES = 10  # backgrounds that the authors test
PLACES = (("left", "right"), ("bottom", "top"))  # of the first animal, and of the second


class Scenes(ZeroShot):
    """Pools of scenes and single animals; a record's tag is its world."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        tags = {record.name: record.tags for record in self.records}
        return {**summaries_by_task(items, outcomes), **summaries_by_tag(items, outcomes, tags)}


def singles(rows: Sequence[FileRow]) -> list[FileRow]:
    """The lines with a single animal, those first that lack the first, as the authors order them."""
    alone = [row for row in rows if [row.content[name] for name in ANIMALS].count(ABSENT) == 1]
    return sorted(alone, key=lambda row: row.content[ANIMALS[0]] != ABSENT)


def single_animal(row: FileRow, places: tuple[str, str]) -> tuple[str, str, str]:
    """The single animal of a line, its place, and the other place."""
    (animal, place), (_, other) = sorted(
        zip(map(row.text, ANIMALS), places, strict=True), key=lambda its: its[0] == ABSENT
    )
    return animal, place, other


def placed(rows: Sequence[FileRow], places: tuple[str, str]) -> list[tuple[FileRow, str, str]]:
    """The lines of single animals in their own looks at two places, each with its true and its false caption."""
    some = (
        row for row in singles(rows) if row.content[TEXTURES[0]] == KINDS[0] and row.content[POSITIONS[0]] == places[0]
    )
    found = ((row, *single_animal(row, places)) for row in some)
    return [(row, PLACED.format(animal, place), PLACED.format(animal, other)) for row, animal, place, other in found]


def captioned(rows: Sequence[FileRow]) -> Iterator[tuple[str, list[tuple[FileRow, str]], list[str]]]:
    """Yield the name of each test, its lines with their captions, and all captions that it chooses among."""
    empty = [row for row in rows if [row.content[name] for name in ANIMALS] == [ABSENT, ABSENT]][:SCENES]
    scenes = [(row, SCENE.format(row.text(WORLD))) for row in empty]
    yield "scene", scenes, [text for _, text in scenes]
    for kind in KINDS:
        own = [row for row in singles(rows) if row.content[TEXTURES[0]] == kind]
        texts = [ANIMAL.format(row.text(ANIMALS[0])) for row in own]
        yield (
            f"one animal, {kind.lower()}",
            [(row, ANIMAL.format(single_animal(row, PLACES[0])[0])) for row in own],
            texts,
        )
    for places in PLACES:
        found = placed(rows, places)
        names = dict.fromkeys(row.text(ANIMALS[0]) for row, *_ in found if row.content[ANIMALS[0]] != ABSENT)
        texts = [PLACED.format(name, place) for name in names for place in places]
        yield f"one animal, {'/'.join(places)}", [its[:2] for its in found], texts


def build(place: Place) -> Scenes:
    sets = []
    for name, lines, texts in captioned(read_csv(place.path(TABLE), COLUMNS)):
        classes = {text: text for text in dict.fromkeys([*texts, *(text for _, text in lines)])}
        records = (
            Record(file, name, (Photograph(file),), (text,), text, (row.text(WORLD),))
            for row, text in lines
            for file in [row.text("filename")]
        )
        if lines:
            sets.append(ImageSet(name, tuple(records), classes, (SLOT,)))
    return Scenes("pug-spar-scenes", FOLDER, sets, place)


def read_places(path: Path, part: str) -> Iterator[Record]:
    """Yield a record for each single animal in its own looks: where it is, and where it isn't."""
    rows = read_csv(path, COLUMNS)
    for places in PLACES:
        for row, *texts in placed(rows, places):
            file, task = row.text("filename"), "/".join(places)
            yield Record(f"{task} {file}", task, (Photograph(file),), tuple(texts), texts[0], (row.text(WORLD),))


BENCHMARK_PUG_SPAR_SCENES = benchmark_spec("pug-spar-scenes", build, (FOLDER,), files=(TABLE,))
BENCHMARK_PUG_SPAR_PLACES = benchmark_of_files("pug-spar-places", {"": TABLE}, read_places, FOLDER, kind=PugSpar)
