"""Scores every model on every split, skipping what is finished, and writes tables and report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from envs.common.errors import UserError
from envs.common.progress import PlainLines, progress_bar
from generators.benchmarks.benchmark import Benchmark
from models.library.loaded import LoadedScorer
from studies.evaluation.models import Model
from studies.evaluation.pieces import Piece, images_of, pieces_of, score_piece
from studies.evaluation.report import publish
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
        try:
            loaded = model.source.load(device) if own else None
        except UserError as error:
            leave_out(left_out, own, error)
            continue
        for piece in own:
            label = piece.split.label
            tests[label] = tests.get(label) or piece.split.tests()
            score(piece, loaded, tests[label], left_out)
            publish(out, pieces, left_out)
    if len(left_out) == len(pieces):
        raise UserError(f"no model can be scored on any split: {next(iter(left_out.values()))}")
    return publish(out, pieces, left_out)


def score(piece: Piece, loaded: LoadedScorer, tests: Mapping[str, Benchmark], left_out: dict[str, str]) -> None:
    """Score one piece under a bar of its images."""
    lines = PlainLines()
    try:
        with progress_bar() as bar:
            task = bar.add_task(f"{piece.name}, images", total=images_of(tests))

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
