"""VG-Attribution of ARO: two things of a photograph and their attributes, exchanged in the false caption."""

from collections.abc import Mapping, Sequence

from menagerie.generators.benchmarks.aro import IMAGES, LICENCE, SOURCE, boxed_records, shown
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Photographs, Place, by_group, macro
from menagerie.generators.benchmarks.registry import BenchmarkSpec

FILE = "aro/visual_genome_attribution.json"
FEWEST = 25  # records of a pair of attributes that counts


class VGAttribution(Photographs):
    """Groups are pairs of attributes."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over pairs of attributes with enough records, as the official notebook has it, and over all."""
        parts = [summarise(its) for its in by_group(items, outcomes).values()]
        return {
            "macro over attributes": macro([part for part in parts if part.n >= FEWEST]),
            "micro": summarise(outcomes),
        }


def build(place: Place) -> VGAttribution:
    """All records of its file."""
    records = boxed_records(place, FILE, lambda entry: "_".join(entry.texts("attributes", 2)))
    return VGAttribution("vg-attribution", IMAGES, records, place)


BENCHMARK = BenchmarkSpec(
    name="vg-attribution",
    about="two things and their attributes, exchanged in the false caption",
    files=(FILE,),
    images=(IMAGES,),
    source=SOURCE,
    licence=LICENCE,
    build=build,
    photographs=shown,
    counts={"all": 28748},
    published={"CLIP ViT-B/32, OpenAI": {"macro over attributes": 63.2}},
)
