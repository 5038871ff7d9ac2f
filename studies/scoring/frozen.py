"""Models on frozen benchmarks, which are splits with checked digests: all scores are kept, and cards are written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_names, write_csv
from menagerie.envs.render import RENDER_VERSION
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.frozen.digests import make_frozen
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.judges.forms import FORMS
from menagerie.models.judges.judge import Judge
from menagerie.models.library.judged import JudgeSource
from menagerie.models.library.sources import ScorerSource
from menagerie.models.scorer import Scorer
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.evaluation import FILE, Results, evaluate
from menagerie.studies.runs.results import checked_file
from menagerie.studies.scoring.card_scores import COLUMNS, HAD, read_scores, record_results, score_row
from menagerie.studies.scoring.card_scores import FILE as SCORES
from menagerie.studies.scoring.cards import CardAnswers, CardModel, CardTest, write_card
from menagerie.studies.scoring.models import Model, explain_sources, training_lines
from menagerie.studies.scoring.splits import SplitPiece
from menagerie.studies.scoring.study import named_results
from menagerie.studies.scoring.trained_on import with_items, without_left_out

CARDS = "cards"


@dataclass(frozen=True)
class FrozenPiece(SplitPiece):
    """A model on a frozen benchmark."""

    kept: ClassVar[tuple[str, ...]] = (FILE, SCORES)

    def evaluate_piece(self, tests: Mapping[str, Benchmark], scorer: Scorer | Judge) -> Results:
        """Return the results, and write all scores beside the predictions, also those of left out records."""
        rows: dict[tuple[str, str, str], tuple[object, ...]] = {}

        def keep(subset: str, items: Sequence[Item], scores: Sequence[Float[np.ndarray, "_ _"]]) -> None:
            both = zip(items, scores, strict=True)
            rows.update({(subset, item.task, item.record): score_row(subset, item, its) for item, its in both})

        results = evaluate(self.folder, without_left_out(tests, self.covered), scorer, keep)
        counted = {*rows}
        for subset, test in tests.items():
            rest = with_items(test, lambda item, of=subset: (of, item.task, item.record) not in counted)
            keep(subset, rest.items, score_items(scorer, rest) if rest.items else [])
        order = [(subset, item.task, item.record) for subset, test in tests.items() for item in test.items]
        marks = [(int(key not in counted),) for key in order] if len(counted) < len(order) else [()] * len(order)
        columns = (*COLUMNS, *[HAD] * (len(counted) < len(order)))
        write_csv(self.folder / SCORES, columns, ((*rows[key], *mark) for key, mark in zip(order, marks, strict=True)))
        return results


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


def piece_class(name: str) -> type[SplitPiece]:
    """Return the class of the pieces of a split of this name."""
    return FrozenPiece if name in FROZEN else SplitPiece


def make_if_frozen(name: str, root: Path, workers: int) -> Path | None:
    """Render and check a frozen benchmark, and return its split file; None for other splits."""
    return make_frozen(load_frozen(name), root, workers) if name in FROZEN else None


def write_cards(records: Records) -> list[Path]:
    """Write a card of each model on each frozen benchmark into the folder of the study."""
    found = list(frozen_pieces(records))
    titles = [f"{portable_label(piece.tested)} on {piece.label}" for piece, _ in found]
    names = titles if len({*titles}) == len(titles) else [piece.name for piece, _ in found]
    files = file_names(names)
    models = {piece.model: piece.tested for piece, _ in found}
    says = dict(
        zip(models, (line for model in models.values() for line in explain_sources([model]).values()), strict=True)
    )
    trained = training_lines(list(models.values()))
    written = []
    for name, (piece, result) in zip(names, found, strict=True):
        origin = result["provenance"]
        model = CardModel(
            portable_label(piece.tested),
            piece.tested.weights,
            says[piece.model],
            trained.get(piece.model, ""),
            (result.get("cut") or {}).get("texts", 0),
            answers_of_judge(piece.tested.source, result),
            [CardTest(its, without_folders(str(had)), had.lost) for its, had in piece.covered.items() if had.records],
        )
        program = {
            **{"version": origin["versions"]["binding-menagerie"], "render_version": RENDER_VERSION},
            "commit": origin["commit"] or "",
        }
        scores = checked_file(piece.folder, SCORES)
        if not any(record_results(read_scores(scores))):
            print(f"no card of {name}: its training had every record in part")
            continue
        bench, day = load_frozen(piece.label), origin["started"].partition("T")[0]
        written.append(write_card(records.out / CARDS, files[name], scores, bench, model, program, day))
    return written


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


def frozen_pieces(records: Records) -> Iterator[tuple[FrozenPiece, Mapping[str, Any]]]:
    """Yield the finished pieces of frozen benchmarks in the study's folder, with their results."""
    for piece, result in named_results(records):
        if isinstance(piece, FrozenPiece):
            yield piece.job(records.out), result
