"""Scores the finished cells on benchmarks, each with the parser that it was trained with; tables of what came out."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.generators.benchmarks.photographs import Place as Place
from menagerie.generators.benchmarks.registry import chosen
from menagerie.generators.sources.folders import Given
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.analysis.tables import DASH, described, pivot
from menagerie.studies.evaluation.models import Model
from menagerie.studies.real_training.cells import Described, Planned
from menagerie.studies.real_training.config import NONE, Config, TrainedOn
from menagerie.studies.real_training.photographs import GROUP
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.results import finished
from menagerie.studies.transferring.check import read_benchmarks
from menagerie.studies.transferring.pieces import Piece, Subject, measured, pieces_of, subjects_of
from menagerie.studies.transferring.report import THEIRS, run_where_possible

FOLDER = "benchmarks"


@dataclass(frozen=True)
class Tests:
    """The benchmarks of a study, as each of its parsers reads their texts."""

    subjects: Mapping[str, Sequence[Subject]]
    pieces: dict[str, list[Piece]] = field(default_factory=dict, compare=False)
    """The tests of each finished cell met so far, so that its weights and texts are hashed only once."""

    @classmethod
    def of(cls, config: Config, parsers: Sequence[str], root: Path, folders: Given) -> "Tests":
        """Read the benchmarks' files, and parse their texts; raises for what was named and can't be read."""
        workers = config.workers or os.cpu_count() or 1
        place = Place(root, workers=workers, allow_missing=config.allow_missing, folders=folders)
        read = read_benchmarks(chosen(config.benchmarks), bool(config.benchmarks), place)
        return cls({parser: subjects_of(read, parser, config.parses) for parser in dict.fromkeys(parsers)})


def pieces(runs: Sequence[Planned], tests: Tests, out: Path, skip: bool) -> dict[str, list[Piece]]:
    """The pieces to be scored for every finished cell, by the cell's id."""
    found = {}
    for run in runs:
        folder = out / "cells" / run.cell.id
        if not finished(folder):
            continue
        if run.cell.id not in tests.pieces:
            model = Model(run.cell.name, Checkpoint(run.cell.name, folder / CHECKPOINT, run.cell.model))
            tests.pieces[run.cell.id] = pieces_of([model], tests.subjects[run.place.parser], out / FOLDER, skip)
        found[run.cell.id] = tests.pieces[run.cell.id]
    return found


def score(runs: Sequence[Planned], tests: Tests, out: Path, config: Config) -> dict[str, str]:
    """Score what isn't scored yet, and write the report of all records; returns why some can't be scored."""
    import torch

    every = [
        piece for of_cell in pieces(runs, tests, out, config.unknown_words == "skip").values() for piece in of_cell
    ]
    if not every:
        return {}
    there = not config.device.startswith("cuda") or torch.cuda.is_available()  # cells may have been trained elsewhere
    return run_where_possible(every, out / FOLDER, config.device if there else "cpu", None)


Published = Mapping[str, Mapping[str, float]]  # by model and name
AXES = ("model", *TrainedOn._fields)
NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread")
COLUMNS = (*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell")
HELD_OUT = "held-out captions"
HEADLINE = "headline"


def tidy(cells: Sequence[Mapping[str, Any]], scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """A row for each number of each finished cell, as fractions; `scores` are results of benchmarks by cell."""
    rows = []
    for cell in cells:
        place = {**{name: cell.get(name, NONE) for name in AXES}, "seed": cell["seed"], "cell": cell["id"]}
        test = cell["subsets"]["validation"][GROUP]
        held = {"official": test["official"], "neutral": test["accuracy"], "tie_rate": test["tie_rate"], "n": test["n"]}
        rows.append(place | {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""} | held)
        for result in scores.get(cell["id"], ()):
            what = {"benchmark": result["benchmark"]}
            rows += [place | what | {"kind": kind, "name": name} | values for kind, name, values in measured(result)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({name: float for name in ("official", "neutral", "tie_rate")})


def headlines(frame: pd.DataFrame, published: Mapping[str, Published]) -> pd.DataFrame:
    """A row for each model and place with means over seeds and deviations, in percent, a column for each headline.

    Rows of papers are marked as theirs. Columns that say where are left out where they say the same in all rows.
    """
    shown = frame[frame.kind == HEADLINE]
    shown = shown.assign(column=shown.benchmark + (": " + shown.name.astype(str)).where(shown.name != "", ""))
    table = described(pivot(shown, list(AXES), ["column"], "official"), deviations=True).reset_index()
    names = [name for name in table.columns if name not in AXES]
    theirs = [
        {"model": model + THEIRS, **{name: DASH for name in AXES[1:]}, **row}
        for model in dict.fromkeys(model for numbers in published.values() for model in numbers)
        if set((row := row_of(model, names, published)).values()) != {DASH}
    ]
    table = pd.concat([table, pd.DataFrame(theirs, columns=table.columns)], ignore_index=True)
    return table.drop(columns=[name for name in AXES[1:] if shown[name].nunique() < 2])


def row_of(model: str, columns: Sequence[str], published: Mapping[str, Published]) -> dict[str, str]:
    """A model's published results, by the columns of headlines."""
    row = {}
    for column in columns:
        benchmark, _, name = column.partition(": ")
        number = published.get(benchmark, {}).get(model, {}).get(name)
        row[column] = DASH if number is None else f"{number:.1f}"
    return row


def data_table(photos: Mapping[tuple[str, str], Described]) -> pd.DataFrame:
    """A table of how many photographs and captions each set of sources has with each parser."""
    rows = []
    for (sources, parser), there in photos.items():
        left = ", ".join(f"{count} {reason}" for reason, count in (*there.numbers.left_out, *there.numbers.refused))
        numbers = (there.numbers.images, there.numbers.held_out, there.numbers.captions)
        rows.append([sources, parser, *map(str, numbers), left or "none", there.numbers.parsed or DASH])
    columns = ["sources", "parser", "photographs", "held out", "captions", "left out", "parsed"]
    return pd.DataFrame(rows, columns=columns)
