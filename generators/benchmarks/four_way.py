"""Winoground and benchmarks like it: two images and two texts, each true of one image, scored in three ways.

Each record becomes three items, one under each rule of `FOUR_WAY_RULES`: text (each image prefers its text), image
(each text prefers its image), group (both). All rules are strict; chance is 25, 25 and 16.7 %.

- Winoground (Thrush et al. 2022): both captions have the same words. Parts are the tags of the paper's table 2.
- ColorSwap (Burapacheep et al. 2024): colours have changed places. Only the test split is used, 300 of 1000 records.
  The authors evaluate image-text models in a notebook that we haven't read.
- BiVLC (Miranda et al. 2024): SugarCrepe's true and false captions of COCO images, and a generated image for each false
  one; parts are SugarCrepe's edits. The paper's I2T is the text score, its T2I the image score; their four comparisons
  are reported too, as in src/CLIP_fine_tuning/CLIP_utils.py (evaluate_BiVLC) of github.com/IMirandaM/BiVLC. All
  photographs are of val2017, which training leaves out as a whole. The hub has the set as parquet; here it has one
  JSON object per line.
- Cola (Ray et al. 2023), multi-object setting: two photographs of Visual Genome, with attributes of two objects
  swapped. The authors' accuracy is the image score. `cola_single.py` has the single-object setting.

MMVP-VLM (Tong et al. 2024) has pairs of images that CLIP confuses, each with a statement, in nine visual patterns. The
authors' code checks for each statement whether it prefers its image, and counts a pair as right if both do. It picks
the second image unless the first has more than half of the softmax: on a tie the first statement is wrong and the
second right. Folders follow that code (scripts/evaluate_vlm.py of github.com/tsb0601/MMVP).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import (
    FOUR_WAY_RULES,
    Item,
    Outcome,
    ScoredItem,
    Scores,
    Summary,
    apply_rule,
    images_chosen,
    summarise,
    true_above,
)
from menagerie.generators.benchmarks.photographs import (
    ItemBenchmark,
    Photograph,
    Record,
    summaries_by_tag,
    summaries_by_task,
)
from menagerie.generators.benchmarks.registry import BenchmarkSpec, benchmark_of_files
from menagerie.generators.sources.kept_out import VISUAL_GENOME
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import is_text, read_csv, read_entries, read_json_lines, read_lists

RULES = tuple(FOUR_WAY_RULES)
TAGS = ("collapsed_tag", "secondary_tag")
# BiVLC's names of its four comparisons: an image's texts, a text's images; the photograph and its caption are positive.
PARTS: Mapping[str, Callable[[Scores], Outcome]] = {
    "Ipos_2T": lambda scores: prefers_own(scores, 0),
    "Ineg_2T": lambda scores: prefers_own(scores, 1),
    "Tpos_2I": lambda scores: prefers_own(scores.T, 0),
    "Tneg_2I": lambda scores: prefers_own(scores.T, 1),
}


class FourWay(ItemBenchmark):
    """A benchmark of four-way items, scored by three rules. Each record is a cluster, and each rule is a task."""

    def __init__(self, name: str, folder: str, given: Sequence[Record], place: Place) -> None:
        """Each of `given` has two images and two texts; image i belongs with text i."""
        records = [
            record._replace(name=f"{record.name} {rule}", task=rule, cluster=record.name)
            for record in given
            for rule in RULES
        ]
        super().__init__(name, folder, records, place, FOUR_WAY_RULES)
        self.tags = {record.name: record.tags for record in records}

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The three scores of all records, then those of each tag, named "Object: text"."""
        none = dict.fromkeys(RULES, summarise([]))
        return none | summaries_by_task(items, outcomes) | summaries_by_tag(items, outcomes, self.tags)


class BiVLC(FourWay):
    """BiVLC, whose authors also report each of the four comparisons."""

    def further(self, results: Sequence[ScoredItem], *_: object) -> Iterator[ScoredItem]:
        """Yield each record's comparisons, under the names that the authors give them."""
        for item, scores, _ in results:
            if item.task == RULES[0]:
                for task, rule in PARTS.items():
                    yield ScoredItem(item._replace(task=task), scores, apply_rule(rule, scores))

    def further_headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        return summaries_by_task(items, outcomes) | summaries_by_tag(items, outcomes, self.tags)


def prefers_own(scores: Scores, one: int) -> Outcome:
    """Whether the row number `one` of two is highest in its own column, strictly."""
    return true_above(scores[one, [one]], scores[one, [1 - one]])


def four_way(
    name: str,
    file: str,
    read: Callable[[Path, str], Iterable[Record]],
    shows: str = "",
    kind: Callable[..., FourWay] = FourWay,
) -> BenchmarkSpec:
    """The spec of a benchmark of four-way items, whose images are in the folder `images` of its own."""
    return benchmark_of_files(name, {"": file}, read, f"{name}/images", kind, shows)


def read_four(
    path: Path, part: str, images: Sequence[str], texts: Sequence[str], tags: Sequence[str] = (), ending: str = ""
) -> Iterator[Record]:
    """Yield the records, whose images, texts and tags are under some keys; a record without an id is called by its
    position. Names of images may begin with their folder on the hub, and may lack their `ending`. Tags of `TAGS` may be
    missing."""
    for number, row in enumerate(read_json_lines(path) if path.suffix == ".jsonl" else read_entries(path, list)):
        files = (f"{row.text(key).removeprefix('images/')}{ending}" for key in images)
        name = row.field("id", int) if "id" in row.content else number
        known = tuple(row.text(key) for key in tags if key not in TAGS or is_text(row.content.get(key)))
        yield Record(str(name), "", tuple(map(Photograph, files)), tuple(map(row.text, texts)), tags=known)


def read_cola(path: Path, part: str) -> Iterator[Record]:
    """Yield the records; the names of files are the last parts of the images' addresses."""
    for row in read_lists(path, 4):
        images = (Photograph(row.file_name(0)), Photograph(row.file_name(2)))
        yield Record(row.place, "", images, (row.text(1), row.text(3)))


BENCHMARK_WINOGROUND = four_way(
    "winoground",
    "winoground/examples.jsonl",
    partial(read_four, images=("image_0", "image_1"), texts=("caption_0", "caption_1"), tags=TAGS, ending=".png"),
)
BENCHMARK_COLORSWAP = four_way(
    "colorswap",
    "colorswap/test.json",
    partial(read_four, images=("image_1", "image_2"), texts=("caption_1", "caption_2")),
)
BENCHMARK_BIVLC = four_way(
    "bivlc",
    "bivlc/test.jsonl",
    partial(read_four, images=("image", "negative_image"), texts=("caption", "negative_caption"), tags=("type",)),
    kind=BiVLC,
)
BENCHMARK_COLA = four_way("cola", "cola/COLA_multiobjects_matching_benchmark.json", read_cola, shows=VISUAL_GENOME)


MMVP, MMVP_IMAGES = "mmvp_vlm/Questions.csv", "mmvp_vlm/MLLM_VLM Images"
NUMBER, PATTERN, STATEMENT = "Question ID", "Type", "Statement"
PROMPT = "a photo of "
MOST = 10**6


def second_of_level(scores: Scores) -> Outcome:
    """Whether each text prefers its image; officially the second image wins a tie."""
    (a, b), (c, d) = scores
    return images_chosen(scores)._replace(official=float(a > c and d >= b))


def read_mmvp(path: Path, part: str) -> Iterator[Record]:
    """Yield the records: two successive lines make a pair, and each visual pattern is a task of 15 pairs."""
    rows = read_csv(path, (NUMBER, PATTERN, STATEMENT))
    for first, second in zip_longest(rows[::2], rows[1::2]):
        if second is None or first.text(PATTERN) != second.text(PATTERN):
            raise first.error(f"has no partner of its {PATTERN!r} in the next")
        numbers = [row.whole_number(NUMBER, MOST) for row in (first, second)]
        images = tuple(Photograph(f"{first.text(PATTERN)}/{number}.jpg") for number in numbers)
        texts = tuple(PROMPT + row.text(STATEMENT) for row in (first, second))
        yield Record(" ".join(map(str, numbers)), first.text(PATTERN), images, texts)


class StatementPairs(ItemBenchmark):
    """MMVP-VLM; its code gives CLIP's transform the pictures as they were opened."""

    figures, as_stored = ("macro over patterns",), True


BENCHMARK_MMVP_VLM = benchmark_of_files(
    "mmvp-vlm",
    {"": MMVP},
    read_mmvp,
    MMVP_IMAGES,
    kind=partial(StatementPairs, rules=second_of_level),
)
