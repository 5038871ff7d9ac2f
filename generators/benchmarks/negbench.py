"""NegBench (Alhamoud et al. 2025, "Vision-language models do not understand negation"): multiple choice and retrieval.

`negbench`: four captions of a COCO or VOC2007 image, one of them true; templates affirm, negate, or do both.
`negbench-retrieval`: COCO captions unchanged, and captions that also deny something that isn't in the image.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, first_of_best
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record, summaries_by_task
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.benchmarks.retrieval import Retrieval, caption_records
from menagerie.generators.sources.kept_out import COCO, file_numbers
from menagerie.generators.sources.rows import read_csv

FILES = {
    "coco": "negbench/COCO_val_mcq_llama3.1_rephrased.csv",
    "voc2007": "negbench/VOC2007_mcq_llama3.1_rephrased.csv",
}
IMAGES = "negbench/images"
OPTIONS = tuple(f"caption_{k}" for k in range(4))
TEMPLATES = ("positive", "negative", "hybrid")


class NegBench(ItemBenchmark):
    """Multiple choice; officially the first in the file's order wins a tie."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """For each of the two sets of images, the mean over all its records."""
        return summaries_by_task(items, outcomes, lambda item: item.task.partition(" ")[0])


def read_choices(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file."""
    columns = ("image_path", *OPTIONS, "correct_answer", "correct_answer_template")
    for number, row in enumerate(read_csv(path, columns), start=1):
        template, options = row.text("correct_answer_template"), [row.text(option) for option in OPTIONS]
        if template not in TEMPLATES:
            raise row.error(f"has a 'correct_answer_template' that is none of {', '.join(TEMPLATES)}: {template!r}")
        true, image = row.whole_number("correct_answer", len(OPTIONS) - 1), row.file_name("image_path")
        shown = (Photograph(image),)
        yield Record(f"{part} {number}", f"{part} {template}", shown, tuple(options), image, truth=true)


BENCHMARK = benchmark_of_files(
    "negbench",
    FILES,
    read_choices,
    IMAGES,
    kind=partial(NegBench, rules=first_of_best),
    shows=lambda path, images: file_numbers(COCO, path, images if path.name == Path(FILES["coco"]).name else ()),
)


RETRIEVAL_FILES = {
    "original": "negbench/COCO_val_retrieval.csv",
    "negated": "negbench/COCO_val_negated_retrieval_llama3.1_rephrased_affneg_true.csv",
}


def read_captions_table(path: Path, task: str) -> list[Record]:
    """The images of a table with their captions."""
    rows = read_csv(path, ("filepath", "captions"))
    return caption_records(((row.file_name("filepath"), row.texts("captions")) for row in rows), task)


BENCHMARK_NEGBENCH_RETRIEVAL = benchmark_of_files(
    "negbench-retrieval", RETRIEVAL_FILES, read_captions_table, IMAGES, kind=Retrieval, shows=COCO
)
