"""Photographs with a true and a false caption: ARO's records, SugarCrepe, SugarCrepe++ and VALSE.

- ARO (Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words"): a part of a Visual
  Genome image, in a box. In VG-Attribution two objects' attributes are exchanged, in VG-Relation the two objects
  themselves. ARO's word orders are in `word_order`.
- SugarCrepe (Hsieh et al. 2023, "SugarCrepe: Fixing hackable benchmarks for vision-language compositionality"): seven
  files of captions of COCO val2017 images. Its paper reports the mean over all records (micro), SPARO's paper the mean
  of the files (macro).
- SugarCrepe++ (Dumpala et al. 2024): five of them, each caption with a paraphrase that is also true. An image is right
  if both true captions score strictly higher than the false one (the paper's image-to-text task); chance is 1/3. In the
  text-only task the true captions' cosine is strictly higher than both of theirs with the false one; scorers without
  vectors of texts have no number. It is as in VLMs/test_Variants_CLIP.py of github.com/Sri-Harsha/scpp.
- VALSE (Parcalabescu et al. 2022): a foil differs from the caption in one linguistic phenomenon, in eleven files. As in
  the authors' code, a record is scored only if at least two of three annotators chose the caption alone. The paper's
  pairwise accuracy is averaged over the files. Of scorers whose score says by itself whether a text is true
  (`Scorer.match_level`) stand beside it p_c, the share of captions taken for true, p_f, that of foils taken for false,
  and acc, the mean of both. They follow lxmert_valse_eval.py of github.com/Heidelberg-NLP/VALSE: a foil just at the
  level is left out, a caption there is taken for false.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.benchmark import (
    Item,
    Outcome,
    ScoredItem,
    Scores,
    Summary,
    apply_rule,
    texts_chosen,
    true_above,
)
from menagerie.generators.benchmarks.photographs import (
    Box,
    ItemBenchmark,
    Photograph,
    Record,
    Vectors,
    summaries_by_task,
    with_means,
)
from menagerie.generators.benchmarks.registry import benchmark_of_files, facts
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, PhotographId, coco_number, file_numbers
from menagerie.generators.sources.rows import FileRow, read_entries


def record_of(entry: FileRow, name: str, task: str, image: Photograph, *texts: str) -> Record:
    """A record with the texts under some keys; records of one image file form a cluster."""
    return Record(name, task, (image,), tuple(map(entry.text, texts)), image.file)


SIDES = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
FEWEST = 25  # fewest records of a pair of attributes that counts
# Relations that hold both ways or are rare; the official notebook leaves them out.
EXCLUDED = Path(__file__).parent / "data" / "vgr_excluded_relations.json"


def read_aro(path: Path, exchanged: str) -> Iterator[Record]:
    """Yield the records of a file; `exchanged` says what false captions exchange."""
    for entry in read_entries(path, list):
        task = entry.text("relation_name") if exchanged == "objects" else "_".join(entry.texts("attributes", 2))
        box = Box(*(round(entry.number(side)) for side in SIDES))
        image = Photograph(entry.file_name("image_path"), box)
        yield record_of(entry, entry.place, task, image, "true_caption", "false_caption")


class VGAttribution(ItemBenchmark):
    """VG-Attribution; tasks are pairs of attributes. The official notebook averages those with enough records."""

    figures = ("macro over attributes", "micro")

    def tasks_to_average(self, tasks: Mapping[str, Summary]) -> list[Summary]:
        numbers = Counter(item.task for item in self.items)
        return [summary for name, summary in tasks.items() if numbers[name] >= FEWEST]


class VGRelation(ItemBenchmark):
    """VG-Relation; tasks are relations, of which those count that the official notebook keeps."""

    figures = ("macro over relations", "micro")

    def tasks_to_average(self, tasks: Mapping[str, Summary]) -> list[Summary]:
        excluded = set(read_json(EXCLUDED, list[str]))
        return [summary for name, summary in tasks.items() if name not in excluded]


aro_benchmark = partial(benchmark_of_files, read=read_aro, images="aro/images", shows=VISUAL_GENOME)
BENCHMARK_VG_ATTRIBUTION = aro_benchmark(
    "vg-attribution", {"attributes": "aro/visual_genome_attribution.json"}, kind=VGAttribution
)
BENCHMARK_VG_RELATION = aro_benchmark("vg-relation", {"objects": "aro/visual_genome_relation.json"}, kind=VGRelation)


SUGARCREPE, SUGARCREPE_PP = (facts(name)["counts"] for name in ("sugarcrepe", "sugarcrepe-pp"))
IMAGES = "coco/val2017"


def read_sugarcrepe(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file. They keep the file's keys, which have gaps in swap_obj."""
    for entry in read_entries(path, dict):
        image = Photograph(entry.text("filename"))
        yield record_of(entry, f"{part} {entry.place}", part, image, "caption", "negative_caption")


def read_sugarcrepe_pp(path: Path, part: str) -> Iterator[Record]:
    for entry in read_entries(path, list):
        name, image = f"{part} {entry.field('id', int)}", Photograph(entry.text("filename"))
        yield record_of(entry, name, part, image, "caption", "caption2", "negative_caption")


def both_above(scores: Scores) -> Outcome:
    """Whether both of two true texts score higher than a false one; the neutral accuracy breaks ties at random."""
    return texts_chosen(scores, 2)


class SugarCrepe(ItemBenchmark):
    """SugarCrepe; its code gives open_clip's transform the pictures as they were opened."""

    figures, as_stored = ("micro", "macro"), True


class ByFile(ItemBenchmark):
    """A benchmark whose further numbers are by file, with their mean over files."""

    def further_headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        return with_means(summaries_by_task(items, outcomes))


class SugarCrepePP(ByFile):
    """SugarCrepe++ with its text-only task."""

    def further(
        self, results: Sequence[ScoredItem], vectors: Vectors | None = None, level: float | None = None
    ) -> Iterator[ScoredItem]:
        """Yield the cosines of both true captions with each other, and of each with the false one."""
        of = vectors([text for item, *_ in results for text in item.texts]) if vectors else {}
        for item, *_ in results if of else ():
            one, other, false = (of[text] for text in item.texts)
            scores = np.array([[one @ other, one @ false, other @ false]])
            yield ScoredItem(item._replace(task=f"{item.task}: text only"), scores, texts_chosen(scores))


sugarcrepe = partial(benchmark_of_files, images=IMAGES, shows=COCO)
BENCHMARK_SUGARCREPE = sugarcrepe(
    "sugarcrepe",
    {name: f"sugarcrepe/{name}.json" for name in SUGARCREPE},
    read_sugarcrepe,
    kind=SugarCrepe,
)
BENCHMARK_SUGARCREPE_PP = sugarcrepe(
    "sugarcrepe-pp",
    {name: f"sugarcrepe_pp/{name}.json" for name in SUGARCREPE_PP},
    read_sugarcrepe_pp,
    kind=partial(SugarCrepePP, rules=both_above, figures=("micro", "macro"), true_texts=2),
)


VALSE = facts("valse")["counts"]
VOTES = 2  # of three annotators
VISUAL7W = "v7w_"  # prefix of the numbers that Visual Genome gives Visual7W's photographs


def read_valse(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file for which enough annotators chose the caption."""
    for entry in read_entries(path, dict):
        if entry.nested("mturk").number("caption") >= VOTES:
            image = Photograph(entry.text("image_file"))
            yield record_of(entry, f"{part} {entry.place}", part, image, "caption", "foil")


class Valse(ByFile):
    """VALSE with its numbers of captions and foils by themselves."""

    def further(
        self, results: Sequence[ScoredItem], vectors: Vectors | None = None, level: float | None = None
    ) -> Iterator[ScoredItem]:
        """Yield acc, p_c and p_f of each record whose foil isn't just at the level."""
        for item, scores, _ in results:
            if level is not None and scores[0, 1] != level:
                for name, rule in VALSE_RULES.items():
                    outcome = apply_rule(rule, scores - level)
                    yield ScoredItem(item._replace(task=f"{item.task}: {name}"), scores, outcome)


def caption_fits(scores: Scores) -> Outcome:
    """Whether the caption's score is above 0; a level one is broken at random by the neutral accuracy."""
    return true_above(scores[0, :1], np.zeros(1))


def foil_detected(scores: Scores) -> Outcome:
    """Whether the foil's score is below 0."""
    return true_above(-scores[0, 1:], np.zeros(1))


def both_judged(scores: Scores) -> Outcome:
    """The mean of both."""
    one, other = caption_fits(scores), foil_detected(scores)
    return Outcome((one.official + other.official) / 2, (one.neutral + other.neutral) / 2, one.tied or other.tied)


VALSE_RULES = {"acc": both_judged, "p_c": caption_fits, "p_f": foil_detected}


def valse_photographs(path: Path, images: Iterable[str]) -> Iterator[PhotographId]:
    """The photographs of COCO and Visual Genome among images; those of SWiG, and VisDial's own, are in neither."""
    for image in images:
        if image.startswith(VISUAL7W):
            yield from file_numbers(VISUAL_GENOME, path, [image.removeprefix(VISUAL7W)])
        elif not image.startswith("VisualDialog") and (number := coco_number(image)):
            yield number


BENCHMARK_VALSE = benchmark_of_files(
    "valse",
    {name: f"valse/data/{name}.json" for name in VALSE},
    read_valse,
    "valse/images",
    kind=partial(Valse, figures=("macro", "micro")),
    shows=valse_photographs,
)
