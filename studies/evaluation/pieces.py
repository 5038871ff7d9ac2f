"""One model on one split: scored once, kept as a finished piece."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import VERSION
from menagerie.models.contract import attempt
from menagerie.models.library.framed import Framed
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.scorer import Scorer
from menagerie.studies.evaluation.models import Model
from menagerie.studies.evaluation.splits import TestedSplit
from menagerie.studies.evaluation.whole_texts import cut_record
from menagerie.studies.runs.evaluation import FILE, evaluate
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result

BLOCK = 256  # texts that are read at once


@dataclass(frozen=True)
class Piece:
    """A model and a split, and the folder of their results."""

    model: Model
    split: TestedSplit
    out: Path
    id: str
    """Hash of the weights, and of the split's content."""

    @property
    def folder(self) -> Path:
        """Its result and its predictions."""
        return self.out / "cells" / self.id

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.model.label} on {self.split.label}"


def pieces_of(models: list[Model], splits: list[TestedSplit], out: Path) -> list[Piece]:
    """Every model on every split."""
    contents = {split.label: split.identity for split in splits}
    found = []
    for model in models:
        for split in splits:
            what = {"model": model.weights, "split": contents[split.label], "version": VERSION}
            found.append(Piece(model, split, out, digest(what)))
    return found


def score_piece(
    piece: Piece, loaded: LoadedScorer, tests: Mapping[str, Benchmark], report: Callable[[int], None]
) -> None:
    """Score all tests of a split, and write predictions and then the result; `report` receives numbers of images.

    Raises where the model can't, or where its scores are no numbers.
    """
    started = time.perf_counter()
    framed = {name: Framed(test, loaded.framing, report) for name, test in tests.items()}
    subsets = attempt(piece.model.label, "fails", lambda: evaluate(piece.folder, framed, loaded.scorer))
    result = {
        **{"id": piece.id, "model": piece.model.label, "split": piece.split.label, "subsets": subsets},
        "cut": attempt(piece.model.label, "fails", lambda: cut_record(loaded.scorer, texts_of(tests))),
        **{"seconds": round(time.perf_counter() - started, 1), "provenance": provenance()},
    }
    write_result(piece.folder, result, (FILE,))


def check_texts(scorer: Scorer, tests: Mapping[str, Benchmark]) -> None:
    """Raise for the first text that a scorer can't read: an unknown word, a missing graph."""
    texts = texts_of(tests)
    for start in range(0, len(texts), BLOCK):
        scorer.reader(*map(list, zip(*texts[start : start + BLOCK], strict=True)))


def texts_of(tests: Mapping[str, Benchmark]) -> list[Caption]:
    """Every text once."""
    return list(dict.fromkeys(text for test in tests.values() for text in test.texts))


def images_of(tests: Mapping[str, Benchmark]) -> int:
    """Images that scoring reads."""
    return sum(len({number for item in test.items for number in item.images}) for test in tests.values())
