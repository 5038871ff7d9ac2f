"""CLEVR-bind (Lewis et al. 2022, "Does CLIP bind concepts?"): colours, shapes and relations of one or two things.

Five captions, the first one true. Officially the first of equal scores counts, so a constant scorer is always right.
"""

from collections.abc import Iterator

from generators.benchmarks.benchmark import first_of_best
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.csv_file import read_csv
from generators.sources.json_file import Entry, read_json

FOLDER = "clevr_bind"
OPTIONS = ("pos", *(f"neg_{k}" for k in range(4)))
# Group -> table, and folder of its images.
TABLES = {
    "single_object val": ("single_object/val.csv", "single_object/images"),
    "single_object test": ("single_object/test.csv", "single_object/images"),
    "two_object val": ("two_object/val.csv", "two_object/images/val"),
    "two_object gen": ("two_object/gen.csv", "two_object/images/gen"),
}
RELATIONS = {"rel val": ("rel/val.json", "rel/images/val"), "rel gen": ("rel/gen.json", "rel/images/gen")}
OPPOSITES = {"front": "behind", "behind": "front", "left": "right", "right": "left"}
SHAPES = ("cube", "sphere", "cylinder")


def build(place: Place) -> Photographs:
    """Tables of attributes and lists of relations, as far as papers test on them."""
    records = [*attributes(place), *relations(place)]
    return Photographs("clevr-bind", place.path(FOLDER), records, place, first_of_best)


def attributes(place: Place) -> Iterator[Record]:
    """The records whose distractors stand in the file."""
    for group, (file, images) in TABLES.items():
        for row in read_csv(place.path(f"{FOLDER}/{file}"), ("file_name", *OPTIONS)):
            image = Photograph(f"{images}/{row.text('file_name')}")
            yield Record(f"{group} {row.line}", group, (image,), tuple(map(row.text, OPTIONS)), image.file)


def relations(place: Place) -> Iterator[Record]:
    """The records whose distractors are made of the true text."""
    for group, (file, images) in RELATIONS.items():
        for entry in read_json(place.path(f"{FOLDER}/{file}")).values():
            for k, text in enumerate(entry.texts("pos")):
                image = Photograph(f"{images}/{entry.place}")
                yield Record(f"{group} {entry.place} {k}", group, (image,), options(entry, text), image.file)


def options(entry: Entry, text: str) -> tuple[str, ...]:
    """The true "a R b" and its distractors: bRa, the opposite of R, and another thing on either side.

    The official code draws the other thing; ours is the next shape, so that no run differs from another.
    """
    parts = text.split()
    if len(parts) != 3 or parts[1] not in OPPOSITES:
        raise entry.error(f"has a text under 'pos' that is no 'subject relation object': {text!r}")
    a, relation, b = parts
    other = next(shape for shape in SHAPES if shape not in (a, b))
    false = [(b, relation, a), (a, OPPOSITES[relation], b), (other, relation, b), (a, relation, other)]
    return (text, *(" ".join(words) for words in false))


BENCHMARK = BenchmarkSpec(
    name="clevr-bind",
    about="colours, shapes and relations of one or two simple things, five captions each",
    files=tuple(f"{FOLDER}/{file}" for file, _ in (*TABLES.values(), *RELATIONS.values())),
    images=tuple(f"{FOLDER}/{images}" for _, images in dict.fromkeys((*TABLES.values(), *RELATIONS.values()))),
    source="github.com/marthaflinderslewis/clip-binding",
    licence="BSD-3",
    build=build,
    photographs=None,
)
