"""Scores every model on every benchmark, skipping what is finished, and writes tables and report."""

import warnings
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from envs.common.errors import UserError
from envs.common.progress import PlainLines, progress_bar
from models.library.loaded import LoadedScorer
from studies.evaluation.run import load
from studies.runs.cell import finished
from studies.transferring.pieces import Piece, score_piece
from studies.transferring.report import print_headlines, write_report, write_tables


def run(pieces: list[Piece], out: Path, device: str) -> Path:
    """Score what isn't scored yet; returns the report. Raises where nothing can be scored."""
    left_out = score_all(pieces, out, device)
    if len(left_out) == len(pieces):
        raise UserError(f"no model can be scored on any benchmark: {next(iter(left_out.values()))}")
    print_headlines(pieces)
    return write_report(out, pieces, left_out)


def score_all(pieces: list[Piece], out: Path, device: str) -> dict[str, str]:
    """Score what isn't scored yet; what can't be is left out with a word, and returned with the reason."""
    waiting = [piece for piece in pieces if finished(piece.folder) is None]
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused, with a line of ours
    print(f"{len(pieces)} pieces, {len(pieces) - len(waiting)} of them finished before", flush=True)
    left_out: dict[str, str] = {}
    for model in dict.fromkeys(piece.model for piece in waiting):
        own = [piece for piece in waiting if piece.model == model]
        try:
            loaded = load(model, device)
        except UserError as error:
            left_out |= {piece.name: str(error) for piece in own}
            print(f"left out: {model.label}: {error}", flush=True)
            continue
        for piece in own:
            if finished(piece.folder) is None and (reason := score(piece, loaded)):
                left_out[piece.name] = reason
            write_tables(out, pieces)
    return left_out


def score(piece: Piece, loaded: LoadedScorer) -> str:
    """Score one piece under a bar of its images; returns why it can't be, or nothing."""
    lines = PlainLines()
    try:
        with progress_bar() as bar:

            def start(images: int) -> Callable[[int], None]:
                task = bar.add_task(f"images of {piece.subject.label}", total=images)

                def report(count: int) -> None:
                    bar.update(task, advance=count)
                    lines.report(bar, task)

                return report

            score_piece(piece, loaded, start)
    except UserError as error:
        print(f"left out: {piece.name}: {error}", flush=True)
        return str(error)
    print(f"finished {piece.name}", flush=True)
    return ""
