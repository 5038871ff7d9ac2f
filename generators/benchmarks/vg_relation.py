"""VG-Relation of ARO: two things of a photograph and how they are related, exchanged in the false caption."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.aro import IMAGES, LICENCE, SOURCE, boxed_records, shown
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Photographs, Place, by_group, macro
from menagerie.generators.benchmarks.registry import BenchmarkSpec

FILE = "aro/visual_genome_relation.json"
# Relations that hold both ways or are rare, which the official notebook leaves out.
EXCLUDED = Path(__file__).parent / "data" / "vgr_excluded_relations.json"


class VGRelation(Photographs):
    """Groups are relations."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over the relations that the official notebook keeps, and over all records."""
        excluded = set(read_json(EXCLUDED, list[str]))
        parts = {name: summarise(its) for name, its in by_group(items, outcomes).items()}
        kept = [part for name, part in parts.items() if name not in excluded]
        return {"macro over relations": macro(kept), "micro": summarise(outcomes)}


def build(place: Place) -> VGRelation:
    """All records of its file."""
    records = boxed_records(place, FILE, lambda entry: entry.text("relation_name"))
    return VGRelation("vg-relation", IMAGES, records, place)


BENCHMARK = BenchmarkSpec(
    name="vg-relation",
    about="two things and their relation, exchanged in the false caption",
    files=(FILE,),
    images=(IMAGES,),
    source=SOURCE,
    licence=LICENCE,
    build=build,
    photographs=shown,
    counts={"all": 23937},
    published={"CLIP ViT-B/32, OpenAI": {"macro over relations": 59.9}},
)
