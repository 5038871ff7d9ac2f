"""Winoground (Thrush et al. 2022): two images and two captions, each true of one.

400 records; both captions have the same words. Gated, for research only.
"""

from collections.abc import Mapping, Sequence

from generators.benchmarks.benchmark import QUADS, Item, Outcome, Summary, summarise
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record, of_groups
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.json_file import Entry, is_text, read_json_lines

FILE, IMAGES = "winoground/examples.jsonl", "winoground/images"
TAGS = ("collapsed_tag", "secondary_tag")


class Winoground(Photographs):
    """Each record three times, once under each of its rules: text, image and group."""

    tags: Mapping[str, Sequence[str]]
    """Of each record."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The three scores, and the same by tag, as table 2 of the paper has them."""
        parts: dict[str, list[Outcome]] = {}
        for item, outcome in zip(items, outcomes, strict=True):
            for tag in self.tags[item.cluster]:
                parts.setdefault(f"{tag}: {item.group}", []).append(outcome)
        return of_groups(items, outcomes) | {name: summarise(its) for name, its in sorted(parts.items())}


def build(place: Place) -> Winoground:
    """All records of its file."""
    entries = read_json_lines(place.path(FILE))
    records = [record for entry in entries for record in records_of(entry)]
    made = Winoground("winoground", place.path(IMAGES), records, place, QUADS)
    made.tags = {name_of(entry): tags_of(entry) for entry in entries}
    return made


def name_of(entry: Entry) -> str:
    """The id of a record."""
    return str(entry.field("id", int))


def tags_of(entry: Entry) -> list[str]:
    """The tags of a record that it has one of."""
    return [tag for key in TAGS if is_text(tag := entry.content.get(key))]


def records_of(entry: Entry) -> list[Record]:
    """One record under each rule."""
    images = tuple(Photograph(f"{entry.text(key)}.png") for key in ("image_0", "image_1"))
    texts = tuple(entry.text(key) for key in ("caption_0", "caption_1"))
    return [Record(f"{name_of(entry)} {rule}", rule, images, texts, name_of(entry)) for rule in QUADS]


BENCHMARK = BenchmarkSpec(
    name="winoground",
    about="two images and two captions of the same words in another order",
    files=(FILE,),
    images=(IMAGES,),
    source="huggingface.co/datasets/facebook/winoground (data/examples.jsonl, images.zip), once its terms are accepted",
    licence="Meta's research licence; not to be passed on",
    build=build,
    photographs=None,
    counts={rule: 400 for rule in QUADS},
)
