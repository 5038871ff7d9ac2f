"""Scores every model on every benchmark, skipping what is finished, and writes tables and report."""

import warnings
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from menagerie.models.contract import attempt
from menagerie.models.evaluation.code_store import CodeFolder
from menagerie.models.evaluation.codes import Codes
from menagerie.studies.evaluation.loop import Outputs, image_bar, load, score_all, score_waiting
from menagerie.studies.evaluation.models import Model
from menagerie.studies.transferring.pieces import Loaded, Piece, score_piece
from menagerie.studies.transferring.report import print_headlines, write_report, write_tables

OUTPUTS = Outputs(write_tables, write_report)


def run(pieces: list[Piece], out: Path, device: str, folder: CodeFolder | None) -> Path:
    """Score what isn't scored yet; returns the report. Codes of images are kept in `folder`."""
    report = score_all(pieces, out, preparing(device, folder), score, OUTPUTS)
    print_headlines(pieces)
    return report


def run_where_possible(pieces: list[Piece], out: Path, device: str, folder: CodeFolder | None) -> dict[str, str]:
    """`run` for a study that has results without: returns why pieces were left out, all of them perhaps."""
    left_out = score_waiting(pieces, out, preparing(device, folder), score, OUTPUTS)
    write_report(out, pieces, left_out)
    return left_out


def preparing(device: str, folder: CodeFolder | None) -> Callable[[Model], Loaded]:
    """What loads a model, and remembers its codes of images."""
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused, with a line of ours

    def prepare(model: Model) -> Loaded:
        its = load(model, device)
        side = its.framing.resolution
        return Loaded(its, attempt(model.label, "fails", lambda: Codes(its.scorer, model.weights, side, folder)))

    return prepare


def score(piece: Piece, loaded: Loaded) -> None:
    """Score one piece under a bar of its images."""
    with image_bar(piece.subject.label) as start:
        score_piece(piece, loaded, start)
