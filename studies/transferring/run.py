"""Scores every model on every benchmark, skipping what is finished, and writes tables and report."""

import warnings
from pathlib import Path

from PIL import Image

from models.contract import attempt
from models.evaluation.code_store import CodeFolder
from models.evaluation.codes import Codes
from studies.evaluation.loop import Outputs, image_bar, load, score_all
from studies.evaluation.models import Model
from studies.transferring.pieces import Loaded, Piece, score_piece
from studies.transferring.report import print_headlines, write_report, write_tables


def run(pieces: list[Piece], out: Path, device: str, folder: CodeFolder | None) -> Path:
    """Score what isn't scored yet; returns the report. Codes of images are kept in `folder`."""
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused, with a line of ours

    def prepare(model: Model) -> Loaded:
        its = load(model, device)
        side = its.framing.resolution
        return Loaded(its, attempt(model.label, "fails", lambda: Codes(its.scorer, model.weights, side, folder)))

    def score(piece: Piece, loaded: Loaded) -> None:
        with image_bar(piece.subject.label) as start:
            score_piece(piece, loaded, start)

    report = score_all(pieces, out, prepare, score, Outputs(write_tables, write_report))
    print_headlines(pieces)
    return report
