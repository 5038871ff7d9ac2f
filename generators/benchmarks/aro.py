"""ARO's records (Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words").

A record shows a part of a Visual Genome image, in a box, with a true and a false caption: in VG-Attribution two
objects' attributes are exchanged, in VG-Relation the two objects themselves. ARO's word orders are in `word_order`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Box, ItemBenchmark, Photograph, Record, macro, summaries_by_task
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, numbers_under
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_json_list

IMAGES = "aro/images"
SIDES = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def aro_benchmark(
    name: str, file: str, kind: type[ItemBenchmark], task: Callable[[FileRow], str], count: int, **facts: Any
) -> BenchmarkSpec:
    """The spec of a benchmark of `count` records with boxes; records that show parts of one image form a cluster."""

    def build(place: Place) -> ItemBenchmark:
        records = []
        for entry in read_json_list(place.path(file)):
            image = entry.text("image_path").rpartition("/")[2]
            box = Box(*(round(entry.number(side)) for side in SIDES))
            texts = (entry.text("true_caption"), entry.text("false_caption"))
            records.append(Record(entry.place, task(entry), (Photograph(image, box),), texts, image))
        return kind(name, IMAGES, records, place)

    return BenchmarkSpec(
        name=name,
        files=(file,),
        images=(IMAGES,),
        source="github.com/mertyg/vision-language-models-are-bows (links in dataset_zoo/aro_datasets.py)",
        licence="MIT; images: Visual Genome, CC BY 4.0",
        build=build,
        photographs=numbers_under(VISUAL_GENOME, read_json_list, "image_path"),
        counts={"all": count},
        **facts,
    )


FEWEST = 25  # fewest records of a pair of attributes that counts


class VGAttribution(ItemBenchmark):
    """VG-Attribution; tasks are pairs of attributes."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over pairs of attributes with enough records, as in the official notebook, and the mean over all
        records."""
        numbers = Counter(item.task for item in self.items)
        parts = summaries_by_task(items, outcomes)
        return {
            "macro over attributes": macro([part for name, part in parts.items() if numbers[name] >= FEWEST]),
            "micro": summarise(outcomes),
        }


BENCHMARK_VG_ATTRIBUTION = aro_benchmark(
    "vg-attribution",
    "aro/visual_genome_attribution.json",
    VGAttribution,
    lambda entry: "_".join(entry.texts("attributes", 2)),
    28748,
    about="two objects and their attributes, exchanged in the false caption",
    published={"CLIP ViT-B/32, OpenAI": {"macro over attributes": 63.2}},
)


# Relations that hold both ways or are rare; the official notebook leaves them out.
EXCLUDED = Path(__file__).parent / "data" / "vgr_excluded_relations.json"


class VGRelation(ItemBenchmark):
    """VG-Relation; tasks are relations."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over the relations that the official notebook keeps, and the mean over all records."""
        excluded = set(read_json(EXCLUDED, list[str]))
        kept = [part for name, part in summaries_by_task(items, outcomes).items() if name not in excluded]
        return {"macro over relations": macro(kept), "micro": summarise(outcomes)}


BENCHMARK_VG_RELATION = aro_benchmark(
    "vg-relation",
    "aro/visual_genome_relation.json",
    VGRelation,
    lambda entry: entry.text("relation_name"),
    23937,
    about="two objects and their relation, exchanged in the false caption",
    published={"CLIP ViT-B/32, OpenAI": {"macro over relations": 59.9}},
)
