"""Results of models on benchmarks of photographs, as tables: every number, headlines, and ours in a paper's layout.

Each column of a paper's table names our number for it. Where the paper doesn't say what a figure is of, the table's
note does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from menagerie.envs.core.reading import read_toml
from menagerie.generators.benchmarks.benchmark import summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, group_by_task
from menagerie.studies.analysis.tables import DASH, to_latex
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece
from menagerie.studies.scoring.judged import flagged
from menagerie.studies.scoring.levels import in_percent
from menagerie.studies.scoring.study import left_out, named_results

NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread", "low", "high")
COLUMNS = ("model", "benchmark", "kind", "name", *NUMBERS, "piece")
THEIRS = " (theirs)"
PART = "*"  # behind a number that isn't of all records
# Value of a number, what a row of it is called beside a paper's.
ROWS = {"official": "here: official rule", "neutral": "here: ties shared", "tie_rate": "here: ties"}


class Column(NamedTuple):
    """A column of a paper, and where our number for it is."""

    title: str
    benchmark: str
    name: str
    """The name of a task of records, or of a headline."""


class PaperTable(NamedTuple):
    """A table of a paper, with its figures in percent."""

    number: int
    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


OC_CLIP = read_toml(Path(__file__).with_name("oc_clip_tables.toml"))
TABLES = [PaperTable(**given | {"columns": [Column(*its) for its in given["columns"]]}) for given in OC_CLIP["tables"]]


def measured(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each number of a result: "task" or "headline", its name, its values."""
    for kind in ("tasks", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())


@dataclass(frozen=True)
class Scored:
    """The pieces of models on benchmarks, including those that can't be scored or aren't scored yet."""

    records: Records

    @property
    def pieces(self) -> list[BenchmarkPiece]:
        return [arm.cell for arm in self.records.arms]

    @property
    def titles(self) -> dict[str, str]:
        """The models' names in tables, which say if weights are random or if many items have no verdict."""
        return {piece.model: flagged(self.records, piece.model, piece.tested.title) for piece in self.pieces}

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table of results.csv: a row for each number; fractions of 1."""
        place = ("model", "benchmark")
        rows = [
            {**{its: one[its] for its in place}, "kind": kind, "name": name, **values, "piece": one["id"]}
            for _, one in named_results(self.records)
            for kind, name, values in measured(one)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    @cached_property
    def chances(self) -> dict[tuple[str, str, str], float]:
        """Chance accuracies, as fractions, by benchmark, "task" or "headline", and name."""
        benches = {piece.label: piece.subject.bench for piece in self.pieces}
        return {(label, *name): value for label, bench in benches.items() for name, value in chances_in(bench).items()}


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(bench: PhotographBenchmark) -> dict[tuple[str, str], float]:
    """Chance accuracies on one benchmark: those of equal scores, with ties broken at random."""
    if isinstance(bench, MatrixBenchmark):
        found = [its for pool in bench.pools for its in bench.tied_outcomes(pool)]
    else:
        zeros = ((item, np.zeros((len(item.images), len(item.texts)))) for item in bench.items)
        found = [(item, bench.outcome(item, scores)) for item, scores in zeros]
    items, outcomes = [item for item, _ in found], [outcome for _, outcome in found]
    tasks = {("task", name): summarise(summary) for name, summary in group_by_task(items, outcomes).items()}
    headlines = {("headline", name): summary for name, summary in bench.headlines(items, outcomes).items()}
    return {name: summary.neutral for name, summary in (tasks | headlines).items() if summary.neutral is not None}


def percent(value: float | None) -> str:
    """A fraction as percent; a dash for none."""
    return DASH if value is None or pd.isna(value) else in_percent(value)


def headline_table(scored: Scored, counts: bool = False) -> pd.DataFrame:
    """Return a table with a column for each headline of each benchmark, in percent, and a row for each model; papers'
    rows are marked as theirs.

    A model with ties has a second row, which shows their rate. `counts` adds n, the number of records, to our numbers.
    """
    headlines = scored.table[scored.table.kind == "headline"]
    columns = list(dict.fromkeys(zip(headlines.benchmark, headlines.name, strict=True)))
    rows = {}
    for model, title in scored.titles.items():
        values = {(row.benchmark, row.name): row for row in headlines[headlines.model == model].itertuples(index=False)}
        there = [values.get(column) for column in columns]
        rows[title] = [DASH if row is None else percent(row.official) + f" (n {row.n:.0f})" * counts for row in there]
        ties = [DASH if row is None else percent(row.tie_rate) for row in there]
        if set(ties) - {DASH, percent(0.0)}:
            rows[f"{title}: ties"] = ties
    rows["chance"] = [percent(scored.chances.get((bench, "headline", name))) for bench, name in columns]
    published = {piece.label: piece.subject.published for piece in scored.pieces}
    for model in dict.fromkeys(model for figures in published.values() for model in figures):
        numbers = [published[bench].get(model, {}).get(name) for bench, name in columns]
        if any(number is not None for number in numbers):
            rows[model + THEIRS] = [DASH if number is None else f"{number:.1f}" for number in numbers]
    names = [f"{bench}: {name}" for bench, name in columns]
    return pd.DataFrame(list(rows.values()), columns=names).assign(model=list(rows))[["model", *names]]


def benchmark_table(scored: Scored, label: str) -> pd.DataFrame:
    """Return a table of every number of one benchmark, in percent: official rule, ties shared, ties and chance."""
    rows = []
    for row in scored.table[scored.table.benchmark == label].itertuples(index=False):
        left = [f"{int(count)} {word}" for word in ("missing", "unread") if (count := getattr(row, word)) > 0]
        numbers = [percent(getattr(row, name)) for name in ROWS]
        numbers += [percent(scored.chances.get((label, row.kind, row.name))), str(int(row.n))]
        rows.append([scored.titles[row.model], row.kind, row.name, *numbers, ", ".join(left) or DASH])
    published = next(piece.subject.published for piece in scored.pieces if piece.label == label)
    for model, figures in published.items():
        rows += [[model + THEIRS, "", name, f"{value:.1f}", *[DASH] * 5] for name, value in figures.items()]
    columns = ["model", "of", "name", "official (%)", "ties shared (%)", "ties (%)", "chance (%)", "n", "left out"]
    return pd.DataFrame(rows, columns=columns)


def lacking(table: pd.DataFrame) -> dict[str, str]:
    """For each model and benchmark with unscored records, how many were scored, of how many, and why."""
    parts = {}
    for (model, label), rows in table[table.kind == "task"].groupby(["model", "benchmark"], sort=False):
        left = {word: int(rows[word].sum()) for word in ("missing", "unread")}
        if any(left.values()):
            scored = int(rows.n.sum())
            reasons = ", ".join(f"{count} {word}" for word, count in left.items() if count)
            parts[f"{model} on {label}"] = f"{scored} of {scored + sum(left.values())} scored; {reasons}"
    return parts


def paper_tables(scored: Scored) -> list[tuple[PaperTable, pd.DataFrame]]:
    """Make each table of the paper for which at least one benchmark was scored: first our models, then chance, then the
    paper's figures."""
    there, found = set(scored.table.benchmark), []
    for layout in TABLES:
        if there & {column.benchmark for column in layout.columns}:
            columns = ["model", "source", *(column.title for column in layout.columns)]
            guessed = (chance_of(scored, column) for column in layout.columns)
            rows = [*our_rows(scored, layout), ["chance", "", *map(percent, guessed)], *their_rows(layout)]
            found.append((layout, pd.DataFrame(rows, columns=columns)))
    return found


def chance_of(scored: Scored, column: Column) -> float | None:
    """Return chance for a column, which shows a headline or a task."""
    both = (scored.chances.get((column.benchmark, kind, column.name)) for kind in ("headline", "task"))
    return next(filter(None, both), None)


def their_rows(layout: PaperTable) -> Iterator[list[str]]:
    """Yield the paper's figures; rows that end early are filled with dashes."""
    for model, *figures in layout.rows:
        shown = [figure for _, figure in zip_longest(layout.columns, figures, fillvalue=DASH)]
        yield [model + THEIRS, f"OC-CLIP paper, table {layout.number}", *shown]


def our_rows(scored: Scored, layout: PaperTable) -> Iterator[list[str]]:
    """Yield three rows for each model: scores by the official rule, scores with ties shared, and rates of ties. A
    missing number is a dash with the reason."""
    gone, names = left_out(scored.records), {(piece.model, piece.label): piece.name for piece in scored.pieces}
    for model, title in scored.titles.items():
        rows = scored.table[scored.table.model == model]
        partial = set(rows[(rows[["missing", "unread"]] > 0).any(axis=1)].benchmark)
        for value, source in ROWS.items():
            cells = []
            for column in layout.columns:
                found = rows[(rows.benchmark == column.benchmark) & (rows.name == column.name)]
                if found.empty:
                    out = names.get((model, column.benchmark)) in gone
                    cells.append(f"{DASH} left out" if out else f"{DASH} not run")
                elif (text := percent(found.iloc[0][value])) == DASH:
                    cells.append(f"{DASH} no records")
                else:
                    cells.append(text + f"{PART} (n {found.iloc[0]['n']:.0f})" * (column.benchmark in partial))
            yield [title, source, *cells]


def latex(tables: Sequence[tuple[PaperTable, pd.DataFrame]]) -> str:
    """Write the tables of the paper in LaTeX."""
    of = f'of "{OC_CLIP["paper"]}"; rows marked{THEIRS} are its figures. Percent.'
    captions = (f"{table.title}, laid out as table {table.number} {of} {table.note}" for table, _ in tables)
    return "\n".join(to_latex(frame, caption) for (_, frame), caption in zip(tables, captions, strict=True))
