"""Scores every model on every split, skipping what is finished, and writes tables and report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.models.library.loaded import LoadedScorer
from menagerie.studies.evaluation.loop import Outputs, image_bar, load, score_all
from menagerie.studies.evaluation.models import Model
from menagerie.studies.evaluation.pieces import Piece, check_texts, images_of, pieces_of, score_piece
from menagerie.studies.evaluation.report import print_swaps, write_report, write_tables
from menagerie.studies.evaluation.splits import TestedSplit


def run(models: list[Model], splits: list[TestedSplit], out: Path, device: str) -> Path:
    """Score what isn't scored yet; returns the report. What can't be scored is left out with a word."""
    pieces = pieces_of(models, splits, out)
    tests: dict[str, Mapping[str, Benchmark]] = {}

    def score(piece: Piece, loaded: LoadedScorer) -> None:
        label = piece.split.label
        tests[label] = tests.get(label) or piece.split.tests()
        check_texts(loaded.scorer, tests[label])
        with image_bar(label) as start:
            score_piece(piece, loaded, tests[label], start(images_of(tests[label])))

    report = score_all(pieces, out, partial(load, device=device), score, Outputs(write_tables, write_report))
    print_swaps(pieces)
    return report
