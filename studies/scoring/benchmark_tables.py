"""What models do on benchmarks of photographs, as tables: every number, headlines, chance, and what wasn't scored."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from menagerie.generators.benchmarks.benchmark import summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographSet, by_group
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece
from menagerie.studies.scoring.papers import THEIRS, percent

COLUMNS = ("model", "benchmark", "kind", "name", "official", "neutral", "tie_rate", "n", "missing", "unread", "piece")
Chances = dict[tuple[str, str], float]


def measured(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every number of a result: "group" or "headline", its name, its values."""
    for kind in ("groups", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())


def tidy(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each number; fractions of 1."""
    rows = [
        {"model": one["model"], "benchmark": one["benchmark"], "kind": kind, "name": name, **values, "piece": one["id"]}
        for one in results
        for kind, name, values in measured(one)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def titles_of(pieces: Sequence[BenchmarkPiece]) -> dict[str, str]:
    """What models are called in tables: the name says it where weights are random."""
    return {piece.model: piece.tested.title for piece in pieces}


def headline_table(table: pd.DataFrame, pieces: Sequence[BenchmarkPiece], counts: bool = False) -> pd.DataFrame:
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
    published = {piece.label: piece.subject.published for piece in pieces}
    for model in dict.fromkeys(model for figures in published.values() for model in figures):
        numbers = [published[bench].get(model, {}).get(name) for bench, name in columns]
        if any(number is not None for number in numbers):
            rows[model + THEIRS] = [DASH if number is None else f"{number:.1f}" for number in numbers]
    names = [f"{bench}: {name}" for bench, name in columns]
    return pd.DataFrame(list(rows.values()), columns=names).assign(model=list(rows))[["model", *names]]


def benchmark_table(table: pd.DataFrame, pieces: Sequence[BenchmarkPiece], label: str) -> pd.DataFrame:
    """Every number of one benchmark: official rule, tie-neutral and ties, in percent."""
    rows, titles, guessed = [], titles_of(pieces), chances_of(pieces)
    for row in table[table.benchmark == label].itertuples(index=False):
        left = [f"{int(count)} {word}" for word in ("missing", "unread") if (count := getattr(row, word)) > 0]
        numbers = [percent(getattr(row, name)) for name in ("official", "neutral", "tie_rate")]
        chance = percent(guessed.get((label, row.kind, row.name)))
        rows.append([titles[row.model], row.kind, row.name, *numbers, chance, str(int(row.n)), ", ".join(left) or DASH])
    published = next(piece.subject.published for piece in pieces if piece.label == label)
    for model, numbers in published.items():
        rows += [[model + THEIRS, "", name, f"{value:.1f}", *[DASH] * 5] for name, value in numbers.items()]
    columns = ["model", "of", "name", "official (%)", "ties shared (%)", "ties (%)", "chance (%)", "n", "left out"]
    return pd.DataFrame(rows, columns=columns)


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


def chances_of(pieces: Sequence[BenchmarkPiece]) -> dict[tuple[str, str, str], float]:
    """Chance accuracies, as fractions, by benchmark, "group" or "headline", and name; none for benchmarks whose
    images are all compared with all texts."""
    benches = {piece.label: piece.subject.bench for piece in pieces}
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
