"""Scores the finished cells of a study on benchmarks of photographs, each with the parser that it was trained with."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import chosen
from menagerie.generators.sources.searched_folders import Given
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.evaluation.models import Model
from menagerie.studies.real_training.cells import Planned
from menagerie.studies.real_training.config import Config
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.results import finished
from menagerie.studies.transferring.check import read_benchmarks
from menagerie.studies.transferring.pieces import Piece, Subject, pieces_of, subjects_of
from menagerie.studies.transferring.run import run_where_possible

FOLDER = "benchmarks"


@dataclass(frozen=True)
class Tests:
    """The benchmarks of a study, as each of its parsers reads their texts."""

    subjects: Mapping[str, Sequence[Subject]]
    pieces: dict[str, list[Piece]] = field(default_factory=dict, compare=False)
    """Of the finished cells that were met, whose weights and texts are hashed once."""

    @classmethod
    def of(cls, config: Config, parsers: Sequence[str], root: Path, folders: Given) -> "Tests":
        """Read the benchmarks' files, and parse their texts; raises for what was named and can't be read."""
        workers = config.workers or os.cpu_count() or 1
        place = Place(root, workers=workers, allow_missing=config.allow_missing, folders=folders)
        read = read_benchmarks(chosen(config.benchmarks), bool(config.benchmarks), place)
        return cls({parser: subjects_of(read, parser, config.parses) for parser in dict.fromkeys(parsers)})


def pieces(runs: Sequence[Planned], tests: Tests, out: Path, skip: bool) -> dict[str, list[Piece]]:
    """What is to be scored of every finished cell, by its id."""
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

    every = [piece for its in pieces(runs, tests, out, config.unknown_words == "skip").values() for piece in its]
    if not every:
        return {}
    there = not config.device.startswith("cuda") or torch.cuda.is_available()  # cells may have been trained elsewhere
    return run_where_possible(every, out / FOLDER, config.device if there else "cpu", None)
