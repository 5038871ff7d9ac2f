"""ARO's records (Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words").

A record shows a part of a Visual Genome image, in a box, with a true and a false caption: in VG-Attribution two
objects' attributes are exchanged, in VG-Relation the two objects themselves. ARO's word orders are in `word_order`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import Box, ItemBenchmark, Photograph, Record, macro, summaries_by_task
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import VISUAL_GENOME, file_numbers
from menagerie.generators.sources.rows import read_entries

SIDES = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def read_boxed(path: Path, exchanged: str) -> Iterator[Record]:
    """Yield the records of a file; `exchanged` says what false captions exchange. Records that show parts of one image
    form a cluster."""
    for entry in read_entries(path, list):
        task = entry.text("relation_name") if exchanged == "objects" else "_".join(entry.texts("attributes", 2))
        image, box = entry.file_name("image_path"), Box(*(round(entry.number(side)) for side in SIDES))
        texts = (entry.text("true_caption"), entry.text("false_caption"))
        yield Record(entry.place, task, (Photograph(image, box),), texts, image)


aro_benchmark = partial(
    benchmark_of_files,
    read=read_boxed,
    images="aro/images",
    shows=partial(file_numbers, VISUAL_GENOME),
    source="github.com/mertyg/vision-language-models-are-bows (links in dataset_zoo/aro_datasets.py)",
    licence="MIT; images: Visual Genome, CC BY 4.0",
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
    {"attributes": "aro/visual_genome_attribution.json"},
    kind=VGAttribution,
    counts={"all": 28748},
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
    {"objects": "aro/visual_genome_relation.json"},
    kind=VGRelation,
    counts={"all": 23937},
    about="two objects and their relation, exchanged in the false caption",
    published={"CLIP ViT-B/32, OpenAI": {"macro over relations": 59.9}},
)
