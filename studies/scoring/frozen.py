"""The cards of frozen benchmarks, which are splits with checked digests."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_names
from menagerie.envs.render import RENDER_VERSION
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.models.judges.forms import FORMS
from menagerie.models.library.judged import JudgeSource
from menagerie.models.library.sources import ScorerSource
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.results import checked_file
from menagerie.studies.scoring.card_scores import FILE as SCORES
from menagerie.studies.scoring.card_scores import read_scores, record_results
from menagerie.studies.scoring.cards import CardAnswers, CardModel, CardTest, write_card
from menagerie.studies.scoring.models import Model, explain_source, training_lines
from menagerie.studies.scoring.page import named_results
from menagerie.studies.scoring.splits import SplitPiece


def check_frozen_options(names: Sequence[str], world: str, resolution: int, default: int) -> None:
    """Raise for options that contradict a frozen benchmark among the splits."""
    for bench in (load_frozen(name) for name in names if name in FROZEN):
        for option, given, ours in (
            ("world", world, bench.recipe.world),
            ("resolution", "" if resolution == default else resolution, bench.resolution),
        ):
            if given not in ("", ours):
                raise UserError(
                    f"--{option} {given} contradicts {bench.name}, a frozen benchmark of {option} {ours}; leave "
                    f"out --{option} or the benchmark"
                )


def write_cards(records: Records) -> list[Path]:
    """Write a card of each model on each frozen benchmark into the folder of the study."""
    found = [(piece.job(records.out), result) for piece, result in named_results(records) if piece.frozen]
    titles = [f"{portable_label(piece.tested)} on {piece.label}" for piece, _ in found]
    names = titles if len({*titles}) == len(titles) else [piece.name for piece, _ in found]
    files, written = file_names(names), []
    for name, (piece, result) in zip(names, found, strict=True):
        scores, origin = checked_file(piece.folder, SCORES), result["provenance"]
        if not any(record_results(read_scores(scores))):
            print(f"no card of {name}: its training had every record in part")
            continue
        program = {"version": origin["versions"]["binding-menagerie"], "render_version": RENDER_VERSION}
        program["commit"] = origin["commit"] or ""
        bench, day = load_frozen(piece.label), origin["started"].partition("T")[0]
        model = card_model(piece, result)
        written.append(write_card(records.out / "cards", files[name], scores, bench, model, program, day))
    return written


def card_model(piece: SplitPiece, result: Mapping[str, Any]) -> CardModel:
    """Return what a card says about the model of a piece."""
    return CardModel(
        portable_label(piece.tested),
        piece.tested.weights,
        explain_source(piece.tested)[1],
        training_lines([piece.tested]).get(piece.model, ""),
        (result.get("cut") or {}).get("texts", 0),
        answers_of_judge(piece.tested.source, result),
        [CardTest(its, without_folders(str(had)), had.lost) for its, had in piece.covered.items() if had.records],
    )


def answers_of_judge(source: ScorerSource, result: Mapping[str, Any]) -> CardAnswers | None:
    """Return what a card says about a judge's answers; None for a scorer."""
    if not isinstance(source, JudgeSource):
        return None
    counts = result["judged"]
    return CardAnswers(counts["items"], counts["undecided"], FORMS[source.form].compares_images)


def portable_label(model: Model) -> str:
    """Return a model's label without folders of this machine or the address of a server."""
    return without_folders(model.cell if isinstance(model.source, JudgeSource) else model.label)


def without_folders(text: str) -> str:
    """Return a text without the folders of absolute paths in it."""
    return re.sub(r"(^|[:/( ])/(?:[^/:;,()\s]+/)*", r"\1", text)
