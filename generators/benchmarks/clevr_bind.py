"""CLEVR-bind (Lewis et al. 2022, "Does CLIP bind concepts?"): colours, shapes and relations of one or two objects.

Each record has five captions, the first one true. Officially the first of equal scores wins: for attributes in the
file's order, so that a constant scorer is always right; for relations in a random order. Captions are the files' texts;
`clevr-bind-prompted` puts the official prompt for CLIP before them, without a space unless the file has one, as the
authors' code does.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Scores, first_of_best, first_of_shuffled
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.rows import FileRow, read_csv, read_entries

FOLDER = "clevr_bind"
OPTIONS = ("pos", *(f"neg_{k}" for k in range(4)))
# Group -> table, and folder of its images.
TABLES = {
    "single_object val": ("single_object/val.csv", "single_object/images"),
    "single_object test": ("single_object/test.csv", "single_object/images"),
    "two_object val": ("two_object/val.csv", "two_object/images/val"),
    "two_object gen": ("two_object/gen.csv", "two_object/images/gen"),
}
RELATIONS = {"rel val": ("rel/val.json", "rel/images/val"), "rel gen": ("rel/gen.json", "rel/images/gen")}
OPPOSITES = {"front": "behind", "behind": "front", "left": "right", "right": "left"}
SHAPES = ("cube", "sphere", "cylinder")
PROMPT = "a photo of"


class ClevrBind(ItemBenchmark):
    """CLEVR-bind; tasks are tables of attributes or lists of relations, per split."""

    figures = ()

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """Score an item; of equal scores the first in the file wins, but ties of relations are broken at random."""
        return first_of_shuffled(scores, item.record) if item.task in RELATIONS else first_of_best(scores)


def read_clevr_bind(path: Path, task: str, prompt: str = "") -> Iterator[Record]:
    """Yield the records of a table or a list; `prompt` is put directly before captions."""
    for record in relation_records(path, task) if task in RELATIONS else attribute_records(path, task):
        yield record._replace(texts=tuple(" ".join((prompt + text).split()) for text in record.texts))


def attribute_records(path: Path, task: str) -> Iterator[Record]:
    """Yield the records whose false captions are in the file; the file's white space in captions is kept."""
    for number, row in enumerate(read_csv(path, ("file_name", *OPTIONS)), start=1):
        image = Photograph(f"{TABLES[task][1]}/{row.text('file_name')}")
        texts = tuple(row.content[key] for key in OPTIONS if row.text(key))  # `text` raises for an empty one
        yield Record(f"{task} {number}", task, (image,), texts, image.file)


def relation_records(path: Path, task: str) -> Iterator[Record]:
    """Yield the records whose false captions are made from the true one."""
    for entry in read_entries(path, dict):
        for k, _ in enumerate(entry.texts("pos")):
            image = Photograph(f"{RELATIONS[task][1]}/{entry.place}")
            texts = relation_options(entry, entry.content["pos"][k])
            yield Record(f"{task} {entry.place} {k}", task, (image,), texts, image.file)


def relation_options(entry: FileRow, text: str) -> tuple[str, ...]:
    """The true caption "a R b", and its four false ones: "b R a", one with the opposite of R, and two in which the
    third shape replaces a or b."""
    parts = text.split()
    others = [shape for shape in SHAPES if shape not in parts]
    if len(parts) != 3 or parts[1] not in OPPOSITES or len(others) != 1:
        raise entry.error(f"has a text under 'pos' that is no 'shape relation another_shape': {text!r}")
    (a, relation, b), (other,) = parts, others
    false = [(b, relation, a), (a, OPPOSITES[relation], b), (other, relation, b), (a, relation, other)]
    return (text, *(" ".join(words) for words in false))


clevr_bind = partial(
    benchmark_of_files,
    files={task: f"{FOLDER}/{file}" for task, (file, _) in (TABLES | RELATIONS).items()},
    images=FOLDER,
    folders=tuple(dict.fromkeys(f"{FOLDER}/{images}" for _, images in (TABLES | RELATIONS).values())),
)
BENCHMARK = clevr_bind("clevr-bind", read=read_clevr_bind, kind=ClevrBind)
BENCHMARK_CLEVR_BIND_PROMPTED = clevr_bind(
    "clevr-bind-prompted", read=partial(read_clevr_bind, prompt=PROMPT), kind=ClevrBind
)
