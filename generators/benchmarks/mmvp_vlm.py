"""MMVP-VLM (Tong et al. 2024): pairs of images that CLIP confuses, each with a statement, in nine visual patterns.

The authors' code checks for each statement whether it prefers its image, and counts a pair as right if both do. It
picks the second image unless the first has more than half of the softmax: on a tie the first statement is wrong and the
second right. Folders follow that code (scripts/evaluate_vlm.py of github.com/tsb0601/MMVP).
"""

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Outcome, Scores, images_chosen
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.rows import read_csv

FILE, IMAGES = "mmvp_vlm/Questions.csv", "mmvp_vlm/MLLM_VLM Images"
NUMBER, PATTERN, STATEMENT = "Question ID", "Type", "Statement"
PROMPT = "a photo of "
MOST = 10**6


def second_of_level(scores: Scores) -> Outcome:
    """Whether each text prefers its image; officially the second image wins a tie."""
    (a, b), (c, d) = scores
    return images_chosen(scores)._replace(official=float(a > c and d >= b))


def read_pairs(path: Path, part: str) -> Iterator[Record]:
    """Yield the records: two successive lines make a pair, and each visual pattern is a task of 15 pairs."""
    rows = read_csv(path, (NUMBER, PATTERN, STATEMENT))
    for first, second in zip_longest(rows[::2], rows[1::2]):
        if second is None or first.text(PATTERN) != second.text(PATTERN):
            raise first.error(f"has no partner of its {PATTERN!r} in the next")
        numbers = [row.whole_number(NUMBER, MOST) for row in (first, second)]
        images = tuple(Photograph(f"{first.text(PATTERN)}/{number}.jpg") for number in numbers)
        texts = tuple(PROMPT + row.text(STATEMENT) for row in (first, second))
        yield Record(" ".join(map(str, numbers)), first.text(PATTERN), images, texts)


BENCHMARK = benchmark_of_files(
    "mmvp-vlm",
    {"": FILE},
    read_pairs,
    IMAGES,
    kind=partial(ItemBenchmark, rules=second_of_level, figures=("macro over patterns",)),
    about="pairs of images that CLIP takes for alike, in nine visual patterns",
    source="huggingface.co/datasets/MMVP/MMVP_VLM (Questions.csv and the folder of images)",
    licence="MIT",
    counts={"all": 135},
)
