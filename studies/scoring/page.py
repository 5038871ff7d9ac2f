"""What a study of scored models writes: the results of its pieces, its page, and what it prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from menagerie.envs.core.files import file_names, write_csv, write_text
from menagerie.studies.analysis.tables import print_table, to_latex
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.judged import answers_in_words, flag_undecided
from menagerie.studies.scoring.models import explain_source, short_labels, training_lines
from menagerie.studies.scoring.rerank import rerank_sentence
from menagerie.studies.scoring.scores import Score, first_parts, score_table
from menagerie.studies.scoring.texts import unread_sentence

if TYPE_CHECKING:
    from menagerie.studies.scoring.piece import Piece

AS_THEY_ARE = (
    "Nothing was trained for this: models of a run are as they were trained there, others as published. Numbers are "
    "accuracies in percent with 95 % intervals, for these models as they are and new records or animal pairs; a number "
    "of few has none. Texts that differ only in what a model doesn't read have equal scores, which count as ties."
)
NOTES = (
    "What wasn't scored or read, and what judges answered. An item of a judge without a verdict counts as guessed. "
    "Choices are asked in both orders; if the same letter is answered in both, the place decided, and if both answers "
    "are equally sure, the item counts as guessed too. Tokens include those of answers that were kept from before."
)


def named_results(records: Records) -> "list[tuple[Piece, Mapping[str, Any]]]":
    """Return the finished pieces with their results, labelled by this command and not by an earlier one."""
    return [
        (arm.cell, {**result, "model": arm.cell.model, next(iter(arm.labels)): arm.cell.label})
        for arm, result in records.results
    ]


def write_results(records: Records, columns: Sequence[str]) -> None:
    """Write the table results.csv with a row for each number."""
    rows = (row for piece, result in named_results(records) for row in piece.rows(result))
    write_csv(records.out / "results.csv", columns, ([row.get(name) for name in columns] for row in rows))


def short_names(records: Records) -> dict[str, str]:
    """Return the names of models in tables, with a remark if many of their items have no verdict."""
    names = short_labels(list({arm.cell.model: arm.cell.tested for arm in records.arms}.values()))
    return {model: flag_undecided(records, model, name) for model, name in names.items()}


def score_page(records: Records, scores: Sequence[Score], further: Iterable[Part]) -> Iterator[Part]:
    """Yield the page: which models are best, what to know of each, `further` parts, all numbers of each test, and what
    the models are."""
    yield from first_parts(scores)
    yield Paragraph(AS_THEY_ARE)
    if notes := list(note_rows(records)):
        yield Rows("notes", ("model", "test", "note"), notes, says=NOTES)
    yield from further
    tests = list(dict.fromkeys(its.test for its in scores))
    for test, file in file_names(tests).items():
        yield Heading(test)
        numbers = [its._replace(title="") for its in scores if its.test == test]
        yield score_table(f"scores-{file}", numbers, "All numbers.", folded=f"All numbers of {test}")
    yield from about_models(records, short_names(records))


def note_rows(records: Records) -> Iterator[list[str]]:
    """Yield what a reader has to know of a model on a test: why it has no numbers, what it didn't read, and so on."""
    names = short_names(records)
    results = {piece.id: result for piece, result in named_results(records)}
    for arm in records.arms:
        piece, result = arm.cell, results.get(arm.id, {})
        notes = [f"left out: {why}"] if (why := records.left_out(arm)) else []
        if result:
            notes += [
                unread_sentence(result),
                *piece.notes(result),
                *map(rerank_sentence, result.get("reranked", {}).values()),
            ]
        if result.get("judged"):
            notes.append(answers_in_words(result))
        yield from ([names[piece.model], piece.label, note] for note in notes if note)


def about_models(records: Records, names: Mapping[str, str]) -> Iterator[Part]:
    """Yield a table of what the models are, and what models of a run were trained on."""
    models = list({arm.cell.model: arm.cell.tested for arm in records.arms}.values())
    trained, rows = training_lines(models), []
    for model in models:
        title, text = explain_source(model)
        about = text if title in (model.label, model.title) else f"{title}: {text}"
        rows.append([names.get(model.label, model.title), model.label, about, trained.get(model.label, "")])
    if rows:
        yield Heading("The models")
        yield Rows("models", ("name here", "given as", "what it is", "trained on"), rows)


def headline_table(scores: Sequence[Score]) -> pd.DataFrame:
    """Return the table of all headlines."""
    table = score_table("", [its for its in scores if its.title], "")
    return pd.DataFrame(table.rows, columns=list(table.header))


def write_latex(records: Records, scores: Sequence[Score]) -> None:
    """Write the headlines as results.tex."""
    text = to_latex(headline_table(scores), "Accuracies in percent, with 95 % intervals.")
    write_text(records.out / "results.tex", text)


def print_headlines(scores: Sequence[Score]) -> None:
    """Print the table of all headlines, without numbers of papers."""
    table = headline_table([its for its in scores if its.its.n])
    print_table(table.columns, table.to_numpy().tolist(), "accuracy, %")
