"""Where each model of a grid errs: `errors.csv`, and a section of the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from menagerie.studies.analysis.errors import Source, breakdown, table
from menagerie.studies.analysis.surest import Surest, surest
from menagerie.studies.analysis.tables import to_csv, to_rows
from menagerie.studies.grids.figures import ticked
from menagerie.studies.runs.results import place_of


class Section(NamedTuple):
    """What a report says of one model's errors."""

    model: str
    rows: list[list[str]]
    """Header and rows: accuracy by what is shown, over all cells of the model."""
    place: str
    """The cell whose surest records are shown."""
    surest: Surest


def write_errors(
    out: Path,
    results: Sequence[dict[str, Any]],
    splits: Mapping[str, Path],
    tests: Mapping[str, str],
    place: Sequence[str],
) -> list[Section]:
    """Write `errors.csv`, a row for each place, test, task, factor and value; returns a section for each model.

    `splits` are the split files of cells by their id, `tests` the words for each test, and `place` names what says
    where in a grid a result belongs, the model first.
    """
    places: dict[tuple[Any, ...], list[Source]] = {}
    for result in results:
        source = Source(result["seed"], out / "cells" / result["id"], splits[result["id"]])
        places.setdefault(place_of(result, place), []).append(source)
    parts = [breakdown(tuple(its)).assign(**dict(zip(place, key, strict=True))) for key, its in places.items()]
    if parts:
        whole = pd.concat(parts, ignore_index=True)
        to_csv(out / "errors.csv", whole[[*place, *(name for name in whole if name not in place)]])
    models = dict.fromkeys(key[0] for key in places)
    return [section({key: its for key, its in places.items() if key[0] == model}, tests, place) for model in models]


def section(places: Mapping[tuple[Any, ...], list[Source]], tests: Mapping[str, str], names: Sequence[str]) -> Section:
    """What is said of one model; the surest records are those of its first place and seed, the hardest."""
    sources = tuple(source for its in places.values() for source in its)
    (model, *values), (first, *_) = next(iter(places.items()))
    facts = [f"{name.replace('_', ' ')} {ticked(name, value)}" for name, value in zip(names[1:], values, strict=True)]
    rows = to_rows(table(breakdown(sources), list(tests)).rename(columns=tests))
    return Section(model, rows, ", ".join([*facts, f"seed {first.seed}"]), surest(first, tuple(tests)))
