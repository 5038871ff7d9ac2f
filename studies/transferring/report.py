"""Scores every model on every benchmark, skipping what is finished, and writes tables and a page."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from menagerie.envs.core.figures import photograph
from menagerie.envs.core.files import write_text
from menagerie.envs.core.pages import write_page
from menagerie.generators.benchmarks.benchmark import summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographSet, by_group
from menagerie.models.contract import attempt
from menagerie.models.evaluation.code_store import CodeFolder
from menagerie.models.evaluation.codes import Codes
from menagerie.studies.analysis.tables import DASH, print_table, to_csv, to_latex, to_rows
from menagerie.studies.analysis.words import TERMS, smoke_words
from menagerie.studies.evaluation.loop import Outputs, image_bar, load, score_all, score_waiting, unread_texts
from menagerie.studies.evaluation.models import Model, about, steps_of
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import finished
from menagerie.studies.transferring.papers import THEIRS, latex, paper_tables, percent
from menagerie.studies.transferring.pieces import Loaded, Piece, measured, score_piece
from menagerie.studies.transferring.texts import described

COLUMNS = ("model", "benchmark", "kind", "name", "official", "neutral", "tie_rate", "n", "missing", "unread", "piece")
PIXELS = 160


class Wrong(NamedTuple):
    """An image that a model got wrong, as a data URI, with the text that it preferred and both scores."""

    uri: str
    record: str
    true: str
    preferred: str
    score_true: str
    score_preferred: str


def results_of(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """The results of the finished pieces, under the labels of this command."""
    done = [(piece, finished(piece.folder)) for piece in pieces]
    return [result | {"model": piece.model.label, "benchmark": piece.subject.label} for piece, result in done if result]


def tidy(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each number; fractions of 1."""
    rows = [
        {"model": one["model"], "benchmark": one["benchmark"], "kind": kind, "name": name, **values, "piece": one["id"]}
        for one in results
        for kind, name, values in measured(one)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_tables(out: Path, pieces: Sequence[Piece]) -> pd.DataFrame:
    """Write results.jsonl and results.csv from what is finished; returns the latter."""
    results = results_of(pieces)
    write_text(out / "results.jsonl", "".join(json.dumps(result) + "\n" for result in results))
    table = tidy(results)
    to_csv(out / "results.csv", table)
    return table


def headline_table(table: pd.DataFrame, pieces: Sequence[Piece], counts: bool = False) -> pd.DataFrame:
    """A column for each headline of each benchmark, percent; a row a model, those of papers marked as theirs.

    A model that scores things equal has another row, of its ties. `counts` puts behind our numbers of how many records
    they are.
    """
    headlines = table[table.kind == "headline"]
    columns = list(dict.fromkeys(zip(headlines.benchmark, headlines.name, strict=True)))
    rows, titles = {}, titles_of(pieces)
    for model in titles:
        values = {(row.benchmark, row.name): row for row in headlines[headlines.model == model].itertuples(index=False)}
        for value, label in (("official", titles[model]), ("tie_rate", f"{titles[model]}: ties")):
            cells = [percent(getattr(values[column], value)) if column in values else DASH for column in columns]
            if counts and value == "official":
                behind = [f" (n {values[column].n:.0f})" if column in values else "" for column in columns]
                cells = list(map(str.__add__, cells, behind))
            if value == "official" or set(cells) - {DASH, percent(0.0)}:
                rows[label] = cells
    guessed = chances_of(pieces)
    rows["chance"] = [percent(guessed.get((bench, "headline", name))) for bench, name in columns]
    published = {piece.subject.label: piece.subject.spec.published for piece in pieces}
    for model in dict.fromkeys(model for figures in published.values() for model in figures):
        numbers = [published[bench].get(model, {}).get(name) for bench, name in columns]
        if any(number is not None for number in numbers):
            rows[model + THEIRS] = [DASH if number is None else f"{number:.1f}" for number in numbers]
    names = [f"{bench}: {name}" for bench, name in columns]
    return pd.DataFrame(list(rows.values()), columns=names).assign(model=list(rows))[["model", *names]]


def titles_of(pieces: Sequence[Piece]) -> dict[str, str]:
    return {piece.model.label: piece.model.title for piece in pieces}


def benchmark_table(table: pd.DataFrame, pieces: Sequence[Piece], label: str) -> pd.DataFrame:
    """Every number of one benchmark: official rule, tie-neutral and ties, in percent."""
    rows, titles, guessed = [], titles_of(pieces), chances_of(pieces)
    for row in table[table.benchmark == label].itertuples(index=False):
        left = [f"{int(count)} {word}" for word in ("missing", "unread") if (count := getattr(row, word)) > 0]
        numbers = [percent(getattr(row, name)) for name in ("official", "neutral", "tie_rate")]
        chance = percent(guessed.get((label, row.kind, row.name)))
        rows.append([titles[row.model], row.kind, row.name, *numbers, chance, str(int(row.n)), ", ".join(left) or DASH])
    spec = next(piece.subject.spec for piece in pieces if piece.subject.label == label)
    for model, numbers in spec.published.items():
        rows += [[model + THEIRS, "", name, f"{value:.1f}", *[DASH] * 5] for name, value in numbers.items()]
    columns = ["model", "of", "name", "official (%)", "ties shared (%)", "ties (%)", "chance (%)", "n", "left out"]
    return pd.DataFrame(rows, columns=columns)


def write_report(out: Path, pieces: Sequence[Piece], left_out: Mapping[str, str]) -> Path:
    """Write all tables and report.html."""
    table = write_tables(out, pieces)
    headlines, papers = headline_table(table, pieces), paper_tables(table, pieces, left_out, chances_of(pieces))
    models = list(dict.fromkeys(piece.model for piece in pieces))
    caption = f"Official scores in percent;{THEIRS} marks published ones."
    write_text(out / "results.tex", "\n".join(filter(None, (to_latex(headlines, caption), latex(papers)))))
    labels = list(dict.fromkeys(table.benchmark))
    records = table[table.kind == "group"].groupby(["model", "benchmark"]).n.sum()
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Transfer to photographs",
        headlines=to_rows(headline_table(table, pieces, counts=True)),
        models=about(models),
        terms=TERMS,
        papers={name: (layout.note, to_rows(frame)) for name, (layout, frame) in papers.items()},
        benchmarks={label: to_rows(benchmark_table(table, pieces, label)) for label in labels},
        shows={piece.subject.label: piece.subject.spec.about for piece in pieces},
        wrong={piece.name: wrong for piece in pieces if (wrong := surely_wrong(piece))},
        lacking=lacking(table),
        unread=unread_texts(results_of(pieces), "benchmark"),
        untrained=any(model.title != model.label for model in models),
        left_out=left_out,
        finished=sum(finished(piece.folder) is not None for piece in pieces),
        pieces=len(pieces),
        parsed=list(filter(None, dict.fromkeys(described(piece.subject.parser) for piece in pieces))),
        notes=where_it_ran(out),
        smoke=smoke_words(steps_of(models), [int(n) for n in records]),
    )


def lacking(table: pd.DataFrame) -> dict[str, str]:
    """For each model and benchmark with unscored records, how many were scored, of how many, and why."""
    groups = table[table.kind == "group"]
    parts = {}
    for (model, label), rows in groups.groupby(["model", "benchmark"], sort=False):
        left = {word: int(rows[word].sum()) for word in ("missing", "unread")}
        if any(left.values()):
            scored = int(rows.n.sum())
            reasons = ", ".join(f"{count} {word}" for word, count in left.items() if count)
            parts[f"{model} on {label}"] = f"{scored} of {scored + sum(left.values())} scored; {reasons}"
    return parts


def print_headlines(pieces: Sequence[Piece]) -> None:
    """The headlines on the terminal, a row each: models may be few and headlines many."""
    table = headline_table(tidy(results_of(pieces)), pieces).set_index("model").T
    rows = [(str(name), *row) for name, row in table.iterrows()]
    print_table(["benchmark", *map(str, table.columns)], rows, "official scores, %")


def surely_wrong(piece: Piece) -> list[Wrong]:
    """The images that a model got wrong by the widest margin, as small pictures of their middle."""
    wrong = (finished(piece.folder) or {}).get("wrong", [])
    if not wrong:
        return []
    bench = piece.subject.bench.framed(PIXELS, squashed=False, interpolation="bicubic")
    pixels = bench.images([case["image"] for case in wrong]).permute(0, 2, 3, 1).numpy()
    return [
        Wrong(photograph(image), one["record"], one["true"], one["preferred"], *(f"{x:#.4g}" for x in one["scores"]))
        for image, one in zip(pixels, wrong, strict=True)
    ]


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
    """Make the function that loads a model and remembers its codes of images."""
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused, with a line of ours

    def prepare(model: Model) -> Loaded:
        loaded = load(model, device)
        side = loaded.framing.resolution
        return Loaded(loaded, attempt(model.label, "fails", lambda: Codes(loaded.scorer, model.weights, side, folder)))

    return prepare


def score(piece: Piece, loaded: Loaded) -> None:
    """Score one piece under a bar of its images."""
    with image_bar(piece.subject.label) as start:
        score_piece(piece, loaded, start)


Chances = dict[tuple[str, str], float]


def chances_of(pieces: Sequence[Piece]) -> dict[tuple[str, str, str], float]:
    """Chance accuracies, as fractions, by benchmark, "group" or "headline", and name; none for benchmarks whose
    images are all compared with all texts."""
    benches = {piece.subject.label: piece.subject.bench for piece in pieces}
    return {(label, *name): value for label, bench in benches.items() for name, value in chances_in(bench).items()}


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(bench: PhotographSet) -> Chances:
    """Chance accuracies on one benchmark."""
    if isinstance(bench, MatrixBenchmark):
        return {}
    items = list(bench.items)
    outcomes = [bench.outcome(item, np.zeros((len(item.images), len(item.texts)))) for item in items]
    groups = {("group", name): summarise(summary) for name, summary in by_group(items, outcomes).items()}
    headlines = {("headline", name): summary for name, summary in bench.headlines(items, outcomes).items()}
    return {name: summary.neutral for name, summary in (groups | headlines).items() if summary.neutral is not None}
