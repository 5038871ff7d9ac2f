"""How much of the splits that models are scored on their trainings had, as columns, lines and parts of a page.

`menagerie.generators.trained_on` says what is counted, `menagerie.generators.trained_on` which records are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.trained_on import COUNTED, Overlap
from menagerie.studies.frame.parts import Facts, Heading, Part, Rows

if TYPE_CHECKING:
    from menagerie.studies.frame.records import Records

HEADER = ("model", "subset", *COUNTED, "records left out")
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


def scored_tests(records: "Records") -> list[ScoredTest]:
    """Return the tests that models were scored on, without empty ones."""
    pieces = [arm.cell for arm, _ in records.results]
    every = (ScoredTest(it.model, it.label, name, had) for it in pieces for name, had in it.covered.items())
    return [one for one in every if one.had.records]


def coverage_rows(found: list[ScoredTest], names: Mapping[str, str]) -> list[list[str]]:
    """Return a row for each model and test, with counts; models of unknown training have a single row."""
    rows = {(names[one.model], one.subset if one.had.counts else "all"): coverage_cells(one.had) for one in found}
    return [[*key, *cells] for key, cells in rows.items()]


def coverage_cells(had: Overlap) -> list[str]:
    if not had.counts:
        return ["unknown"] * (len(COUNTED) + 1)
    counts = [f"{n} of {of}" for n, of in had.counts.values()]
    return [*counts, f"{had.lost} of {had.records}"]


def gaps_in(found: list[ScoredTest], names: Mapping[str, str]) -> dict[str, str]:
    """Say what isn't known about each model's training, by the model's name."""
    return {names[one.model]: "; ".join(one.had.gaps) for one in found if one.had.gaps}


def warnings_in(found: list[ScoredTest], names: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence on the records that are left out, and one for each test without any record left."""
    lost = sum(one.had.lost for one in found)
    if lost:
        models = len({one.model for one in found if one.had.lost})
        of = f"{models} model{'s' * (models > 1)}"
        why = "training had their image, or what the test calls unseen"
        yield f"On {found[0].split} {lost} records are left out of the numbers of {of}: {why}."
    for one in found:
        if one.had.lost == one.had.records:
            yield f"{names[one.model]} has no number on {one.subset} of {one.split}: all of it is left out."


def overlap_lines(found: list[ScoredTest], names: Mapping[str, str]) -> Iterator[str]:
    """Yield what training had of each test, and the sentences on left out records."""
    known = [f"{names[one.model]} on {one.subset} of {one.split}: {one.had}" for one in found if one.had.counts]
    unknown = (f"{names[one.model]} on {one.split}: {one.had}" for one in found if not one.had.counts)
    yield from (f"training of {text}" for text in (*known, *dict.fromkeys(unknown)))
    for split in dict.fromkeys(one.split for one in found):
        yield from warnings_in([one for one in found if one.split == split], names)


def print_training(found: list[ScoredTest], names: Mapping[str, str]) -> None:
    """Print what training had of each test."""
    for line in overlap_lines(found, names):
        print(line)


def coverage_parts(
    found: list[ScoredTest], file: str, names: Mapping[str, str], says: str = LEFT_OUT
) -> Iterator[Part]:
    """Yield the section of a split; `says` explains what happens to records that training had."""
    if not found:
        return
    yield Heading(f"{found[0].split}: what training had of it", level=3)
    yield Rows(f"trained-on-{file}", HEADER, coverage_rows(found, names), says=f"{SAYS} {says}")
    if gaps := gaps_in(found, names):
        yield Facts({name: f"not known: {text}" for name, text in gaps.items()})
