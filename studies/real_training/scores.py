"""Scores the finished cells on benchmarks, each with the parser that it was trained with; tables of what came out."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.generators.benchmarks.photographs import Place as Place
from menagerie.generators.benchmarks.registry import chosen
from menagerie.generators.sources.folders import Given
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.analysis.tables import DASH, described, pivot
from menagerie.studies.frame.records import Records
from menagerie.studies.real_training.cells import Described, Planned
from menagerie.studies.real_training.config import NONE, Config, TrainedOn
from menagerie.studies.real_training.photographs import GROUP
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.results import finished
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece, Subject, piece_of, subjects_of
from menagerie.studies.scoring.benchmark_tables import measured
from menagerie.studies.scoring.check import read_benchmarks
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.papers import THEIRS
from menagerie.studies.scoring.piece import How
from menagerie.studies.scoring.study import BenchmarkStudy, left_out

FOLDER = "benchmarks"


@dataclass(frozen=True)
class Tests:
    """The benchmarks of a study, as each of its parsers reads their texts."""

    subjects: Mapping[str, Sequence[Subject]]
    pieces: dict[str, list[BenchmarkPiece]] = field(default_factory=dict, compare=False)
    """The tests of each finished cell met so far, so that its weights and texts are hashed only once."""

    @classmethod
    def of(cls, config: Config, parsers: Sequence[str], root: Path, folders: Given) -> "Tests":
        """Read the benchmarks' files, and parse their texts; raises for what was named and can't be read."""
        workers = config.workers or os.cpu_count() or 1
        place = Place(root, workers=workers, allow_missing=config.allow_missing, folders=folders)
        read = read_benchmarks(chosen(config.benchmarks), bool(config.benchmarks), place)
        return cls({parser: subjects_of(read, parser, config.parses) for parser in dict.fromkeys(parsers)})


@dataclass(frozen=True)
class OfCells(BenchmarkStudy):
    """Transfer to photographs"""

    @cached_property
    def given(self) -> list[BenchmarkPiece]:
        """The pieces, which the study of the cells makes."""
        return []

    def pieces(self) -> Iterator[BenchmarkPiece]:
        """Each finished cell on each benchmark."""
        return iter(self.given)

    def conclude(self, records: Records) -> None:
        """Nothing: the study of the cells prints what came out."""


def pieces(runs: Sequence[Planned], tests: Tests, out: Path, config: Config) -> dict[str, list[BenchmarkPiece]]:
    """The pieces to be scored for every finished cell, by the cell's id."""
    found, how = {}, how_scored(config)
    for run in runs:
        folder = out / "cells" / run.cell.id
        if not finished(folder):
            continue
        if run.cell.id not in tests.pieces:
            model = Model(run.cell.name, Checkpoint(run.cell.name, folder / CHECKPOINT, run.cell.model))
            subjects = tests.subjects[run.place.parser]
            tests.pieces[run.cell.id] = [piece_of(model, one, config.unknown_words == "skip", how) for one in subjects]
        found[run.cell.id] = tests.pieces[run.cell.id]
    return found


def how_scored(config: Config) -> How:
    """On the device that cells were trained on, if it is here: they may have been trained elsewhere."""
    import torch

    there = not config.device.startswith("cuda") or torch.cuda.is_available()
    return How(config.device if there else "cpu")


def results_of(pieces: Sequence[BenchmarkPiece], out: Path) -> list[dict[str, Any]]:
    """The results of the finished pieces."""
    done = [(piece, finished(out / FOLDER / piece.below / piece.id)) for piece in pieces]
    return [result | {"model": piece.model, "benchmark": piece.label} for piece, result in done if result]


def score(cells: Sequence[Planned], tests: Tests, out: Path, config: Config) -> dict[str, str]:
    """Score what isn't scored yet, and write the report of all records; returns why some can't be scored."""
    from menagerie.studies.frame.run import run

    every = [piece for of_cell in pieces(cells, tests, out, config).values() for piece in of_cell]
    if not every:
        return {}
    study = OfCells(out=out / FOLDER, device=every[0].how.device, cluster=config.cluster)
    study.given.extend(every)
    (out / FOLDER).mkdir(exist_ok=True)
    run(study, out / FOLDER)
    return left_out(Records(tuple(study.plan(Records((), out / FOLDER))), out / FOLDER))


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
