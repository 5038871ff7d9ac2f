"""Scores the finished cells of a study on benchmarks of photographs, each with the parser that it was trained with."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generators.benchmarks.photographs import Place
from generators.benchmarks.registry import BenchmarkSpec, load, names
from generators.parsers.registry import DEFAULT
from models.library.sources import Checkpoint
from studies.evaluation.models import Model
from studies.real_training.cells import Planned
from studies.real_training.config import Config
from studies.runs.cell import CHECKPOINT, finished
from studies.transferring.check import usable
from studies.transferring.graphs import with_parser
from studies.transferring.pieces import Piece, Subject, pieces_of, subject_of
from studies.transferring.report import write_report
from studies.transferring.run import score_all

FOLDER = "benchmarks"


@dataclass(frozen=True)
class Tests:
    """The benchmarks of a study, as each of its parsers reads their texts."""

    subjects: Mapping[str, Sequence[Subject]]

    @classmethod
    def of(cls, config: Config, parsers: Sequence[str], root: Path, folders: Mapping[str, Path]) -> "Tests":
        """Read the benchmarks' files, and parse their texts; raises for what was named and can't be read."""
        workers = config.workers or os.cpu_count() or 1
        place = Place(root, workers=workers, allow_missing=config.allow_missing, folders=folders)
        specs = [load(name) for name in config.benchmarks]
        if not specs:
            specs = usable([load(name) for name in names()], place)
        return cls({parser: subjects_of(specs, place, parser, config.parses) for parser in dict.fromkeys(parsers)})


def subjects_of(specs: Sequence[BenchmarkSpec], place: Place, parser: str, parses: Path) -> list[Subject]:
    """The benchmarks with one parser's graphs."""
    read = with_parser(place, parser, parses, specs) if specs and parser != DEFAULT else place
    return [subject_of(spec, read) for spec in specs]


def pieces(runs: Sequence[Planned], tests: Tests, out: Path, skip: bool) -> dict[str, list[Piece]]:
    """What is to be scored of every finished cell, by its id."""
    found = {}
    for run in runs:
        folder = out / "cells" / run.cell.id
        if finished(folder):
            model = Model(run.cell.name, Checkpoint(run.cell.name, folder / CHECKPOINT, run.cell.model))
            found[run.cell.id] = pieces_of([model], tests.subjects[run.place.parser], out / FOLDER, skip)
    return found


def score(runs: Sequence[Planned], tests: Tests, out: Path, config: Config) -> dict[str, str]:
    """Score what isn't scored yet, and write the report of all records; returns why some can't be scored."""
    import torch

    every = [piece for its in pieces(runs, tests, out, config.unknown_words == "skip").values() for piece in its]
    if not every:
        return {}
    there = not config.device.startswith("cuda") or torch.cuda.is_available()  # cells may have been trained elsewhere
    left_out = score_all(every, out / FOLDER, config.device if there else "cpu")
    write_report(out / FOLDER, every, left_out)
    return left_out
