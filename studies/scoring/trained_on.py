"""How much of the splits that models are scored on their trainings had, as lines and a table of a page.

`menagerie.generators.trained_on` says what is counted, and which records are left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.trained_on import COUNTED, Overlap
from menagerie.studies.frame.parts import Heading, Part, Rows

HEADER = ("model", "subset", *COUNTED, "records left out", "not known")
SAYS = (
    "How much of each test the model's training had. Compositions: an animal in a texture. Arrangements: two "
    "compositions in one image or, for relations, two animals in their order. Texts: true captions."
)
LEFT_OUT = (
    "Unseen and seen, in the names of tests, refer to the split's own training. A record is left out of a model's "
    "numbers if its training had the record's image, or what the test calls unseen; a test without any record left has "
    "no number."
)


class ScoredTest(NamedTuple):
    """A test that a model was scored on, and what the model's training had of it."""

    model: str
    """The name in tables."""
    split: str
    subset: str
    had: Overlap


def without_left_out(tests: Mapping[str, Benchmark], had: Mapping[str, Overlap]) -> dict[str, Benchmark]:
    """Return the tests without the items that are left out."""
    return {
        name: with_items(test, lambda item, its=had[name]: its.left_out.isdisjoint(item.images))
        for name, test in tests.items()
    }


def with_items(test: Benchmark, keep: Callable[[Item], bool]) -> Benchmark:
    """Return a copy of a test with some of its items."""
    made = copy(test)
    made.items = list(filter(keep, test.items))
    return made


def coverage_cells(had: Overlap) -> list[str]:
    if not had.counts:
        return ["unknown"] * (len(COUNTED) + 1)
    counts = [f"{n} of {of}" for n, of in had.counts.values()]
    return [*counts, f"{had.lost} of {had.records}"]


def coverage_parts(found: Sequence[ScoredTest], file: str, says: str = LEFT_OUT) -> Iterator[Part]:
    """Yield the section of a split, with a row for each model and test; models of unknown training have a single row.
    `says` explains what happens to records that training had."""
    rows = {(its.model, its.subset if its.had.counts else "all"): its.had for its in found}
    if rows:
        cells = [[*key, *coverage_cells(had), "; ".join(had.gaps)] for key, had in rows.items()]
        yield Heading(f"{found[0].split}: what training had of it", level=3)
        yield Rows(f"trained-on-{file}", HEADER, cells, says=f"{SAYS} {says}")


def print_training(found: Sequence[ScoredTest]) -> None:
    """Print what training had of each test."""
    lines = (f"training of {its.model} on {its.subset} of {its.split}: {its.had}" for its in found if its.had.counts)
    unknown = (f"training of {its.model} on {its.split}: {its.had}" for its in found if not its.had.counts)
    print(*dict.fromkeys((*lines, *unknown)), sep="\n")
