"""Scores every model on every split, skipping what is finished, and writes tables and report."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from envs.common.errors import UserError
from envs.common.progress import PlainLines, progress_bar
from generators.benchmarks.benchmark import Benchmark
from models.library.loaded import LoadedScorer
from studies.evaluation.models import Model
from studies.evaluation.pieces import Piece, check_texts, images_of, pieces_of, score_piece
from studies.evaluation.report import print_swaps, write_report, write_tables
from studies.evaluation.splits import TestedSplit
from studies.runs.cell import finished


def run(models: list[Model], splits: list[TestedSplit], out: Path, device: str) -> Path:
    """Score what isn't scored yet; returns the report. What can't be scored is left out with a word."""
    pieces = pieces_of(models, splits, out)
    waiting = [piece for piece in pieces if finished(piece.folder) is None]
    print(f"{len(pieces)} pieces, {len(pieces) - len(waiting)} of them finished before", flush=True)
    left_out: dict[str, str] = {}
    tests: dict[str, Mapping[str, Benchmark]] = {}
    for model in models:
        own = [piece for piece in waiting if piece.model == model]
        if not own:
            continue
        try:
            loaded = load(model, device)
        except UserError as error:
            leave_out(left_out, own, error)
            continue
        for piece in own:
            if finished(piece.folder):  # two names of one split
                continue
            label = piece.split.label
            tests[label] = tests.get(label) or piece.split.tests()
            score(piece, loaded, tests[label], left_out)
            write_tables(out, pieces)
        write_report(out, pieces, left_out)
    if len(left_out) == len(pieces):
        raise UserError(f"no model can be scored on any split: {next(iter(left_out.values()))}")
    print_swaps(pieces)
    return write_report(out, pieces, left_out)


def load(model: Model, device: str) -> LoadedScorer:
    """Load a model; what it warns of, such as random weights, is printed as a line."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        loaded = model.source.load(device)
    for message in dict.fromkeys(str(warning.message) for warning in warned if warning.category is UserWarning):
        print(f"note: {message}", flush=True)
    return loaded


def score(piece: Piece, loaded: LoadedScorer, tests: Mapping[str, Benchmark], left_out: dict[str, str]) -> None:
    """Score one piece under a bar of its images, if the model can read all texts."""
    lines = PlainLines()
    try:
        check_texts(loaded.scorer, tests)
        with progress_bar() as bar:
            task = bar.add_task(f"images of {piece.split.label}", total=images_of(tests))

            def report(count: int) -> None:
                bar.update(task, advance=count)
                lines.report(bar, task)

            score_piece(piece, loaded, tests, report)
    except UserError as error:
        leave_out(left_out, [piece], error)
    else:
        print(f"finished {piece.name}", flush=True)


def leave_out(left_out: dict[str, str], pieces: Sequence[Piece], error: UserError) -> None:
    """Remember and print why pieces have no result."""
    for piece in pieces:
        left_out[piece.name] = str(error)
        print(f"left out: {piece.name}: {error}", flush=True)
