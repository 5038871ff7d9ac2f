"""The benchmarks that finished cells are scored on, each with the parser that it was trained with."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import chosen
from menagerie.generators.sources.folders import Given
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.frame.arm import Arm, Known
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece, Subject, piece_of, subjects_of
from menagerie.studies.scoring.check import read_benchmarks
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import How

FOLDER = "benchmarks"


@dataclass(frozen=True)
class CellPiece(BenchmarkPiece):
    """A trained cell on a benchmark."""

    below: ClassVar[str] = f"{FOLDER}/{BenchmarkPiece.below}"


def is_piece(arm: Arm) -> bool:
    """Whether an arm is a cell on a benchmark."""
    return isinstance(arm.cell, BenchmarkPiece)


def read_subjects(study: Any, parsers: Iterable[str], root: Path, folders: Given) -> dict[str, Sequence[Subject]]:
    """The benchmarks, as each parser reads their texts; raises for what was named and can't be read."""
    workers = study.workers or os.cpu_count() or 1
    place = Place(root, workers=workers, allow_missing=study.allow_missing, folders=folders)
    read = read_benchmarks(chosen(study.benchmarks), bool(study.benchmarks), place)
    return {parser: subjects_of(read, parser, study.parses) for parser in dict.fromkeys(parsers)}


def pieces_of(study: Any, arm: Arm, known: Known) -> Iterator[Arm]:
    """A finished cell on each benchmark; nothing before."""
    subjects = study.prepared.subjects.get(arm.labels["parser"], ())
    weights = known.weights(arm, arm.cell.name) if subjects else None
    for subject in subjects if weights else ():
        model = model_of(arm.cell.name, weights.folder, arm.cell.model)
        piece = piece_of(model, subject, study.unknown_words == "skip", how_of(study.device))
        yield Arm(as_kind(CellPiece, piece), {"benchmark": subject.label, "cell": arm.id})


@lru_cache(maxsize=1024)  # its weights are hashed once
def model_of(name: str, folder: Path, scorer: str) -> Model:
    """A cell's scorer."""
    return Model(name, Checkpoint(name, folder, scorer))


def how_of(device: str) -> How:
    """Where pieces are scored: on the device that cells are trained on, if it is here."""
    import torch

    there = not device.startswith("cuda") or torch.cuda.is_available()  # cells may be trained elsewhere
    return How(device if there else "cpu")


def as_kind(kind: type[BenchmarkPiece], piece: BenchmarkPiece) -> BenchmarkPiece:
    """The piece, of another folder."""
    return kind(**{item.name: getattr(piece, item.name) for item in fields(piece)})
