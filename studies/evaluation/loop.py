"""Every model on everything that it is to be scored on: finished pieces are skipped, others left out with a word.

Texts that a model doesn't read to their end are counted (`cut_record`), and reports say how many there are.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import PlainLines, progress_bar
from menagerie.generators.captions.templates import Caption
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.scorer import Scorer
from menagerie.studies.evaluation.models import Model
from menagerie.studies.runs.results import finished


@runtime_checkable
class Piece(Protocol):
    """A model and what it is scored on."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def folder(self) -> Path:
        """Folder of its result."""

    @property
    def name(self) -> str:
        """The name in messages."""


P = TypeVar("P", bound=Piece)
Prepared = TypeVar("Prepared")


class Outputs(NamedTuple):
    """The functions that write results to a folder."""

    tables: Callable[[Path, Sequence], object]
    """Writes tables; called after each piece."""
    report: Callable[[Path, Sequence, Mapping[str, str]], Path]
    """Writes the report; called after each model, and also receives what was left out."""


def score_all(
    pieces: Sequence[P],
    out: Path,
    prepare: Callable[[Model], Prepared],
    score: Callable[[P, Prepared], None],
    outputs: Outputs,
) -> Path:
    """`score_waiting`, and its last report; raises where nothing can be scored."""
    left_out = score_waiting(pieces, out, prepare, score, outputs)
    if len(left_out) == len(pieces):
        raise UserError(f"no model can be scored on anything: {next(iter(left_out.values()))}")
    return outputs.report(out, pieces, left_out)


def score_waiting(
    pieces: Sequence[P],
    out: Path,
    prepare: Callable[[Model], Prepared],
    score: Callable[[P, Prepared], None],
    outputs: Outputs,
) -> dict[str, str]:
    """Score what isn't finished, one model after another; returns why pieces were left out, by name.

    What a `UserError` of `prepare` or `score` is about is left out, with a line.
    """
    waiting = [piece for piece in pieces if finished(piece.folder) is None]
    print(f"{len(pieces)} pieces, {len(pieces) - len(waiting)} of them finished before", flush=True)
    left_out: dict[str, str] = {}
    for model in dict.fromkeys(piece.model for piece in waiting):
        of_model = [piece for piece in waiting if piece.model == model]
        try:
            prepared = prepare(model)
        except UserError as error:
            leave_out(left_out, of_model, error)
            continue
        for piece in of_model:
            if finished(piece.folder):  # two names of one thing
                continue
            try:
                score(piece, prepared)
            except UserError as error:
                leave_out(left_out, [piece], error)
            else:
                print(f"finished {piece.name}", flush=True)
            outputs.tables(out, pieces)
        outputs.report(out, pieces, left_out)
    return left_out


def leave_out(left_out: dict[str, str], pieces: Sequence[Piece], error: UserError) -> None:
    """Remember and print why pieces have no result."""
    for piece in pieces:
        left_out[piece.name] = str(error)
        print(f"left out: {piece.name}: {error}", flush=True)


def load(model: Model, device: str) -> LoadedScorer:
    """Load a model; what it warns of, such as random weights, is printed as a line."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        loaded = model.source.load(device)
    for message in dict.fromkeys(str(warning.message) for warning in warned if warning.category is UserWarning):
        print(f"note: {message}", flush=True)
    return loaded


@contextlib.contextmanager
def image_bar(label: str) -> Iterator[Callable[[int], Callable[[int], None]]]:
    """A bar of images: called with their number, it gives what is to be called with how many more are done."""
    lines = PlainLines()
    with progress_bar() as bar:

        def start(images: int) -> Callable[[int], None]:
            task = bar.add_task(f"images of {label}", total=images)

            def report(count: int) -> None:
                bar.update(task, advance=count)
                lines.report(bar, task)

            return report

        yield start


SHOWN = 60  # characters of a text that reports name


def cut_record(scorer: Scorer, texts: Sequence[Caption]) -> dict[str, Any]:
    """Count the texts that are longer than the scorer's context, for a result; also gives the first. Empty if the
    scorer's reader can't tell."""
    cut = scorer.cut_texts([text.text for text in texts], [text.graph for text in texts])
    if cut is None:
        return {}
    long = [text.text for text, is_cut in zip(texts, cut, strict=True) if is_cut]
    return {"texts": len(long), "of": len(texts), "context": scorer.texts.context, "first": long[0] if long else ""}


def unread_texts(results: Sequence[Mapping[str, Any]], what: str) -> dict[str, str]:
    """For each model and `what` (a key of results) whose texts weren't all read whole, the sentence for reports."""
    said = {f"{result['model']} on {result[what]}": words_of(result) for result in results}
    return {name: text for name, text in said.items() if text}


def words_of(result: Mapping[str, Any]) -> str:
    """Say for reports which texts of a result weren't read whole; empty if all were."""
    parts = []
    if not (cut := result["cut"]):
        parts.append("its reader doesn't say which texts it cuts")
    elif cut["texts"]:
        first = cut["first"] if len(cut["first"]) <= SHOWN else f"{cut['first'][:SHOWN]}…"
        parts.append(
            f"{cut['texts']} of {cut['of']} texts are longer than its {cut['context']} tokens, {first!r} first"
        )
    if short := result.get("skipped", {}).get("texts"):
        parts.append(f"{short} texts were shortened to words that it knows, and to as many as it reads")
    return "; ".join(parts)
