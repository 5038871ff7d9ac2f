"""What'sUp (Kamath et al. 2023): two things, photographed in four arrangements.

In set A a thing is on, under, left or right of furniture. Set B shows two things on a table from the front.
"""

import re
from collections.abc import Mapping, Sequence
from math import prod

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, first_of_best, summarise
from menagerie.generators.benchmarks.photographs import Photograph, Photographs, Record, by_group, macro
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json_list

FOLDER = "whatsup"
PARTS = {"A": "controlled_images", "B": "controlled_clevr"}
FILES = {"A": f"{FOLDER}/controlled_images_dataset.json", "B": f"{FOLDER}/controlled_clevr_dataset.json"}
# Opposites have the same number, so that an arrangement and its opposite are a pair.
AXES = {"left_of": 0, "right_of": 0, "on": 1, "under": 1, "in-front_of": 1, "in_front_of": 1, "behind": 1}
NAME = re.compile(rf"(?P<first>.+)_(?P<arrangement>{'|'.join(AXES)})_(?P<second>.+)\.\w+")


class WhatsUp(Photographs):
    """What'sUp. The first of four captions is true; officially the first of equal scores wins."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """Accuracy on pairs of opposites and on sets of four, which are right if all their images are; and the mean of
        the accuracies on single images of A and of B, as in the authors' table 1."""
        parts = by_group(items, outcomes)
        found = {"macro over A and B": macro(list(map(summarise, parts.values())))}
        for group in self.groups:
            scored = [(item, o) for item, o in zip(items, outcomes, strict=True) if item.group == group]
            found[f"{group} pairs"] = together([(pair_of(item), outcome) for item, outcome in scored])
            found[f"{group} sets"] = together([(item.cluster, outcome) for item, outcome in scored])
        return found


def together(outcomes: Sequence[tuple[str, Outcome]]) -> Summary:
    """The accuracy of named sets of images; a set is right if all its images are."""
    sets: dict[str, list[Outcome]] = {}
    for name, outcome in outcomes:
        sets.setdefault(name, []).append(outcome)
    return summarise(
        [
            Outcome(prod(o.official for o in one), prod(o.neutral for o in one), any(o.tied for o in one))
            for one in sets.values()
        ]
    )


def pair_of(item: Item) -> str:
    """The pair of opposite arrangements that an item belongs to."""
    return f"{item.cluster} {AXES[item.record.rpartition(' ')[2]]}"


def build(place: Place) -> WhatsUp:
    records = [
        record for part in PARTS for entry in read_json_list(place.path(FILES[part])) for record in [read(entry, part)]
    ]
    return WhatsUp("whatsup", FOLDER, records, place, first_of_best)


def read(entry: Row, part: str) -> Record:
    """Read one record; the folder in its image's path is ignored."""
    name = entry.text("image_path").rpartition("/")[2]
    parts = NAME.fullmatch(name)
    if parts is None:
        raise entry.error(f"has an 'image_path' that states no arrangement: {name!r}")
    options = entry.texts("caption_options", 4)
    things = f"{parts['first']} {parts['second']}"
    return Record(
        f"{parts['first']} {parts['second']} {parts['arrangement']}",
        part,
        (Photograph(f"{PARTS[part]}/{name}"),),
        options,
        f"{part} {things}",
    )


BENCHMARK = BenchmarkSpec(
    name="whatsup",
    about="two things in four arrangements, four captions each",
    files=tuple(FILES.values()),
    images=tuple(f"{FOLDER}/{name}" for name in PARTS.values()),
    source="github.com/amitakamath/whatsup_vlms (links to its data in the README)",
    licence="MIT",
    build=build,
    photographs=None,
    counts={"A": 412, "B": 408},
)
