"""Tables and report of an evaluation: a table a split, a row a model."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.paired_bootstrap import counts_in, difference, read_points, record_line
from menagerie.studies.analysis.tables import (
    DASH,
    QUAD,
    by_task,
    described,
    flagged,
    meaning_of_flags,
    pivot,
    print_table,
    to_csv,
    to_latex,
    to_rows,
)
from menagerie.studies.analysis.words import CHANCES, TERMS, explained, smoke_words, subsets_explained
from menagerie.studies.evaluation.loop import unread_texts
from menagerie.studies.evaluation.models import about, short_labels, steps_of, trainings
from menagerie.studies.evaluation.pieces import Piece
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import finished

TOO_FEW = re.compile(r" \[[^\]]* pairs?: no interval\]$")
SWAP = "the hard negative: the same words, so exchanged that the caption is false"
COLUMNS = ["model", "split", "subset", "task", "accuracy", "official", "tie_rate", "n", "cell"]


def table_of(pieces: Sequence[Piece]) -> pd.DataFrame:
    """The table of all finished results, with the columns of results.csv."""
    return tidy(results_of(pieces))


def results_of(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """The results of the finished pieces."""
    return [result for piece in pieces if (result := result_of(piece))]


def write_tables(out: Path, pieces: Sequence[Piece]) -> pd.DataFrame:
    """Write cells.jsonl and results.csv from what is finished; returns the latter."""
    results = results_of(pieces)
    table = tidy(results)
    write_text(out / "cells.jsonl", "".join(json.dumps(result) + "\n" for result in results))
    to_csv(out / "results.csv", table)
    return table


def write_report(out: Path, pieces: Sequence[Piece], left_out: Mapping[str, str]) -> Path:
    """Write all tables and report.html."""
    table = write_tables(out, pieces)
    splits = list(dict.fromkeys(piece.split.label for piece in pieces))
    models = list({piece.model.label: piece.model for piece in pieces}.values())
    names = short_labels(models)
    write_text(out / "results.tex", "\n".join(latex(table, list(names), split) for split in splits))
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Evaluation of models as they are",
        splits={split: tables(table, names, split, pieces) for split in splits},
        names={name: label for label, name in names.items() if not name.startswith(label)},
        about=about(models),
        trainings={names[label]: text for label, text in trainings(models).items()},
        terms=TERMS,
        tasks=explained(list(table.task.unique()), SWAP),
        chances=CHANCES,
        subsets=subsets_explained(list(table.subset.unique())),
        left_out=left_out,
        unread=unread_texts(results_of(pieces), "split"),
        finished=sum(finished(piece.folder) is not None for piece in pieces),
        pieces=len(pieces),
        notes=where_it_ran(out),
        smoke=smoke_words(steps_of(models), [int(n) for n in table.n]),
    )


def print_swaps(pieces: Sequence[Piece]) -> None:
    """The tables of swaps on the terminal."""
    table, models = table_of(pieces), list(dict.fromkeys(piece.model.label for piece in pieces))
    for split in table.split.unique():
        header, *rows = to_rows(swaps(table[table.split == split], models))
        print_table(header, rows, f"{split}: swaps preferred right, %")


def result_of(piece: Piece) -> dict[str, Any] | None:
    """A finished piece under the labels of this command: another one may have called the same files otherwise."""
    result = finished(piece.folder)
    return result and result | {"model": piece.model.label, "split": piece.split.label}


def tidy(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each model, split, subset and task; NaN where nothing is defined."""
    rows = [
        {**{name: result[name] for name in ("model", "split")}, "cell": result["id"]}
        | {"subset": subset, "task": task, **scores}
        for result in results
        for subset, tasks in result["subsets"].items()
        for task, scores in tasks.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"accuracy": float, "official": float, "tie_rate": float})


def tables(frame: pd.DataFrame, names: Mapping[str, str], split: str, pieces: Sequence[Piece]) -> dict[str, Any]:
    """The tables of one split: swaps by subset, how they differ from the first model's, all tasks of each subset that
    has scenes, and numbers of records; `names` are short ones by label."""
    of_split = frame[frame.split == split]
    of_split = of_split.assign(model=of_split.model.map(names))
    if of_split.empty:
        return {}
    scored = [piece for piece in pieces if piece.split.label == split and finished(piece.folder)]
    counts, subsets = [counts_in(piece.folder) for piece in scored], list(of_split.subset.unique())
    shown, changes = swaps(of_split, list(names.values()), flags=True), differences(scored, names, subsets)
    bare = without_intervals(changes)
    return {
        "swaps": to_rows(shown),
        "flags": meaning_of_flags(shown),
        "numbers": record_line(counts, {(subset, "swap"): subset for subset in subsets}),
        "task_numbers": {
            subset: record_line(counts, {(subset, task): task for task in sorted(of_split.task.unique(), key=by_task)})
            for subset in subsets
        },
        "first": names[scored[0].model.label],
        "bare": bare,
        "differences": [[TOO_FEW.sub("", cell) if bare else cell for cell in row] for row in changes],
        "tasks": {
            name: to_rows(tasks(part, list(names.values())))
            for name, part in of_split.groupby("subset", sort=False)
            if part.n.any()
        },
        "records": to_rows(records(of_split)),
    }


def without_intervals(changes: Sequence[Sequence[str]]) -> bool:
    """Whether no difference of a table has an interval, each for want of animal pairs."""
    cells = [cell for row in changes[1:] for cell in row[1:] if cell != DASH]
    return bool(cells) and all(TOO_FEW.search(cell) for cell in cells)


def swaps(scores: pd.DataFrame, models: list[str], flags: bool = False) -> pd.DataFrame:
    """A row a model, a column a subset; with `flags` at accuracies that are of one caption liked whatever the image."""
    texts = described(pivot(scores[scores.task == "swap"], ["model"], ["subset"]), models)
    if flags:
        texts = flagged(texts, pivot(scores[scores.task == QUAD], ["model"], ["subset"]))
    return texts.reset_index()


def tasks(scores: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    """The table of one subset's scores: a row for each model, a column for each task."""
    columns = sorted(scores.task.unique(), key=by_task)
    return described(pivot(scores, ["model"], ["task"]), models, columns).reset_index()


def records(scores: pd.DataFrame) -> pd.DataFrame:
    """The table of record counts: a row for each subset, a column for each task."""
    columns = sorted(scores.task.unique(), key=by_task)
    counts = scores.pivot_table("n", "subset", "task", "max", sort=False).reindex(columns=columns)
    return counts.map(lambda count: DASH if pd.isna(count) else f"{count:.0f}").reset_index()


def differences(scored: Sequence[Piece], names: Mapping[str, str], subsets: list[str]) -> list[list[str]]:
    """A row for each further model: points above the first one, with the interval of a paired bootstrap."""
    points = [read_points([(0, piece.folder)]) for piece in scored]
    rows = [["model", *subsets]]
    for piece, other in zip(scored[1:], points[1:], strict=True):
        deltas = [str(difference(points[0], other, subset, "swap") or DASH) for subset in subsets]
        rows.append([names[piece.model.label], *deltas])
    return rows


def latex(frame: pd.DataFrame, models: list[str], split: str) -> str:
    """The table of one split for a paper."""
    of_split = frame[frame.split == split]
    if of_split.empty:
        return ""
    table = swaps(of_split, models).rename(columns=lambda name: name.replace("_", " "))
    return to_latex(table, f"{split}: accuracy in percent; chance is 50.")
