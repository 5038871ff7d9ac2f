"""Our numbers in the layout of a paper's tables, with its figures below them, marked as theirs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import pandas as pd

from menagerie.studies.analysis.tables import DASH, to_latex
from menagerie.studies.transferring.chances import chances_of
from menagerie.studies.transferring.paper_figures import PAPER, TABLES, Column, PaperTable
from menagerie.studies.transferring.pieces import Piece

THEIRS = " (theirs)"
PART = "*"  # behind a number that isn't of all records
# Value of a number, what a row of it is called.
ROWS = {"official": "here: official rule", "neutral": "here: ties shared", "tie_rate": "here: ties"}


def percent(value: float | None) -> str:
    """A fraction as percent; a dash for none."""
    return DASH if value is None or pd.isna(value) else f"{100 * value:.1f}"


def paper_tables(
    table: pd.DataFrame, pieces: Sequence[Piece], left_out: Mapping[str, str]
) -> dict[str, tuple[PaperTable, pd.DataFrame]]:
    """Those of which any benchmark was scored, by how pages call them; `table` is that of results.csv."""
    return {
        f"Table {its.number}: {its.title}": (its, filled(its, table, pieces, left_out))
        for its in TABLES
        if set(table.benchmark) & {column.benchmark for column in its.columns}
    }


def filled(
    layout: PaperTable, table: pd.DataFrame, pieces: Sequence[Piece], left_out: Mapping[str, str]
) -> pd.DataFrame:
    """One table: our models, each by the official rule, with ties shared and with its ties, then the paper's."""
    own = list(our_rows(layout, table, pieces, left_out))
    source = f"OC-CLIP paper, table {layout.number}"
    theirs = [
        [f"{model}{THEIRS}", source, *(figure for _, figure in zip_longest(layout.columns, figures, fillvalue=DASH))]
        for model, *figures in layout.rows
    ]
    guessed = chances_of(pieces)
    kinds = ("headline", "group")
    found = [
        next((its for kind in kinds if (its := guessed.get((c.benchmark, kind, c.name)))), None) for c in layout.columns
    ]
    chance = ["chance", "", *map(percent, found)]
    return pd.DataFrame(
        [*own, chance, *theirs], columns=["model", "source", *(column.title for column in layout.columns)]
    )


def our_rows(
    layout: PaperTable, table: pd.DataFrame, pieces: Sequence[Piece], left_out: Mapping[str, str]
) -> Iterator[list[str]]:
    """Three rows a model; a dash and a word where there is no number."""
    names = {(piece.model.label, piece.subject.label): piece.name for piece in pieces}
    titles = {piece.model.label: piece.model.title for piece in pieces}
    for model in dict.fromkeys(piece.model.label for piece in pieces):
        scored = table[table.model == model]
        partial = set(scored[(scored[["missing", "unread"]] > 0).any(axis=1)].benchmark)
        found = [number_of(scored, column) for column in layout.columns]
        for value, source in ROWS.items():
            cells = []
            for column, number in zip(layout.columns, found, strict=True):
                if number is None:
                    out = names.get((model, column.benchmark)) in left_out
                    cells.append(f"{DASH} left out" if out else f"{DASH} not run")
                else:
                    text = percent(number[value])
                    cells.append(
                        f"{DASH} no records" if text == DASH else text + of_part(number) * (column.benchmark in partial)
                    )
            yield [titles[model], source, *cells]


def of_part(number: pd.Series) -> str:
    """What stands behind a number that isn't of all records: the mark, and of how many it is."""
    return f"{PART} (n {number['n']:.0f})"


def number_of(scored: pd.DataFrame, column: Column) -> pd.Series | None:
    """The number of a column among a model's; None where it wasn't run, or has no such group."""
    rows = scored[(scored.benchmark == column.benchmark) & (scored.name == column.name)]
    return None if rows.empty else rows.iloc[0]


def latex(tables: Mapping[str, tuple[PaperTable, pd.DataFrame]]) -> str:
    """All of them for a paper."""
    caption = f'{{}}, laid out as table {{}} of "{PAPER}"; rows marked{THEIRS} are its figures. Percent. {{}}'
    return "\n".join(to_latex(frame, caption.format(its.title, its.number, its.note)) for its, frame in tables.values())
