"""SPEC and SVO-Probes: which of several images a text describes, and which of several texts an image.

- SPEC (Peng et al. 2024, "Synthesize, diagnose, and optimize: Towards fine-grained vision-language understanding"):
  synthesised images of one scene that differ in size, place, existence or number of an object. In six sets each image
  is asked for its text (I2T), each text for its image (T2I); the authors' spec/eval.py averages the sets. As in its
  models/clip_wrapper.py, the first of equal scores in the file's order wins.
- SVO-Probes (Hendricks and Nematzadeh 2021): a sentence, an image of it, and one with another subject, verb or object.
  Records in which just one of these is another count, as in the authors' notebook. That takes a yes or no for each
  image, which a score isn't; here the image must score strictly higher than the other, as in SVO.ipynb of
  github.com/e-bug/fine-grained-evals (Bugliarello et al. 2023). The authors publish addresses of images, no files:
  a file is called by the image's number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, first_of_best
from menagerie.generators.benchmarks.photographs import (
    ItemBenchmark,
    Photograph,
    Record,
    macro_mean,
    summaries_by_task,
)
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import PhotographId, flickr_number
from menagerie.generators.sources.rows import FileRow, read_csv, read_entries

SETS = ("absolute_size", "relative_size", "absolute_spatial", "relative_spatial", "existence", "count")
WAYS = {"I2T": "image2text", "T2I": "text2image"}


class Spec(ItemBenchmark):
    """SPEC; tasks are sets, each in both ways."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """For each way the mean over the sets."""
        tasks = summaries_by_task(items, outcomes)
        return {f"macro {way}": macro_mean([its for task, its in tasks.items() if task.endswith(way)]) for way in WAYS}


def read_spec(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of a file. Those of the same candidates form a cluster."""
    name, way = part.split()
    for row in read_entries(path, list):
        candidates, query = row.texts("keys"), (row.text("query"),)
        files, texts = (query, candidates) if way == "I2T" else (candidates, query)
        images = tuple(Photograph(f"{name}/{file}") for file in files)
        label, cluster = row.whole_number("label", len(candidates) - 1), f"{part} {min(candidates)}"
        yield Record(f"{part} {row.place}", part, images, texts, cluster, truth=label)


BENCHMARK_SPEC = benchmark_of_files(
    "spec",
    {f"{name} {way}": f"spec/{name}/{file}.json" for name in SETS for way, file in WAYS.items()},
    read_spec,
    "spec",
    kind=partial(Spec, rules=first_of_best),
    folders=tuple(f"spec/{name}" for name in SETS),
)


SVO = "svo_probes/svo_probes.csv"
KINDS = {"subj_neg": "subject", "verb_neg": "verb", "obj_neg": "object"}
NUMBERS, ADDRESSES = ("pos_image_id", "neg_image_id"), ("pos_url", "neg_url")


def read_svo(path: Path, part: str) -> Iterator[Record]:
    """Yield the records of the table in which one part of the sentence is another, each with its true image first."""
    for row in read_csv(path, ("sentence", *NUMBERS, *KINDS)):
        kinds = [kind for column, kind in KINDS.items() if is_true(row, column)]
        if len(kinds) == 1:
            images = tuple(Photograph(f"{row.whole_number(column)}.jpg") for column in NUMBERS)
            yield Record(row.place, kinds[0], images, (row.text("sentence"),), images[0].file)


def is_true(row: FileRow, column: str) -> bool:
    """Whether a cell says True; raises unless it says True or False."""
    if (value := row.text(column).lower()) not in ("true", "false"):
        raise row.error(f"has a {column!r} that is neither True nor False: {value!r}")
    return value == "true"


def svo_photographs(path: Path, images: Iterable[str]) -> Iterator[PhotographId]:
    """The images that have an address of Flickr."""
    for row in read_csv(path, ADDRESSES):
        yield from filter(None, (flickr_number(row.content[column]) for column in ADDRESSES))


BENCHMARK_SVO_PROBES = benchmark_of_files(
    "svo-probes",
    {"": SVO},
    read_svo,
    "svo_probes/images",
    kind=ItemBenchmark,
    shows=svo_photographs,
)
