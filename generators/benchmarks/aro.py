"""ARO's records (Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words").

A record shows a part of a Visual Genome image, in a box, with a true and a false caption: in VG-Attribution two things'
attributes are exchanged, in VG-Relation the two things themselves. ARO's word orders are in `word_order`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Box, Photograph, Photographs, Record, macro, of_groups
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, named_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import Row, read_json_list

IMAGES = "aro/images"
SOURCE = "github.com/mertyg/vision-language-models-are-bows (links in dataset_zoo/aro_datasets.py)"
LICENCE = "MIT; images: Visual Genome, CC BY 4.0"
SIDES = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def boxed_records(place: Place, file: str, group: Callable[[Row], str]) -> list[Record]:
    """The records of a file; records that show parts of one image form a cluster."""
    records = []
    for entry in read_json_list(place.path(file)):
        image = entry.text("image_path").rpartition("/")[2]
        box = Box(*(round(entry.number(side)) for side in SIDES))
        texts = (entry.text("true_caption"), entry.text("false_caption"))
        records.append(Record(entry.place, group(entry), (Photograph(image, box),), texts, image))
    return records


shown = named_in(VISUAL_GENOME, read_json_list, "image_path")
ATTRIBUTION = "aro/visual_genome_attribution.json"
FEWEST = 25  # fewest records of a pair of attributes that counts


class VGAttribution(Photographs):
    """VG-Attribution; groups are pairs of attributes."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over pairs of attributes with enough records, as in the official notebook, and the mean over all
        records."""
        numbers = Counter(item.group for item in self.items)
        parts = of_groups(items, outcomes)
        return {
            "macro over attributes": macro([part for name, part in parts.items() if numbers[name] >= FEWEST]),
            "micro": summarise(outcomes),
        }


def attribution(place: Place) -> VGAttribution:
    records = boxed_records(place, ATTRIBUTION, lambda entry: "_".join(entry.texts("attributes", 2)))
    return VGAttribution("vg-attribution", IMAGES, records, place)


BENCHMARK_VG_ATTRIBUTION = BenchmarkSpec(
    name="vg-attribution",
    about="two things and their attributes, exchanged in the false caption",
    files=(ATTRIBUTION,),
    images=(IMAGES,),
    source=SOURCE,
    licence=LICENCE,
    build=attribution,
    photographs=shown,
    counts={"all": 28748},
    published={"CLIP ViT-B/32, OpenAI": {"macro over attributes": 63.2}},
)


RELATION = "aro/visual_genome_relation.json"
# Relations that hold both ways or are rare; the official notebook leaves them out.
EXCLUDED = Path(__file__).parent / "data" / "vgr_excluded_relations.json"


class VGRelation(Photographs):
    """VG-Relation; groups are relations."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over the relations that the official notebook keeps, and the mean over all records."""
        excluded = set(read_json(EXCLUDED, list[str]))
        kept = [part for name, part in of_groups(items, outcomes).items() if name not in excluded]
        return {"macro over relations": macro(kept), "micro": summarise(outcomes)}


def relation(place: Place) -> VGRelation:
    records = boxed_records(place, RELATION, lambda entry: entry.text("relation_name"))
    return VGRelation("vg-relation", IMAGES, records, place)


BENCHMARK_VG_RELATION = BenchmarkSpec(
    name="vg-relation",
    about="two things and their relation, exchanged in the false caption",
    files=(RELATION,),
    images=(IMAGES,),
    source=SOURCE,
    licence=LICENCE,
    build=relation,
    photographs=shown,
    counts={"all": 23937},
    published={"CLIP ViT-B/32, OpenAI": {"macro over relations": 59.9}},
)
