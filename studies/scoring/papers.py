"""Our numbers in the layout of a paper's tables, with its figures below them, as pages and LaTeX.

Each column also says which number of ours it is. Where the paper doesn't say what a figure is of, the table's note
does.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import pandas as pd

from menagerie.studies.analysis.tables import DASH, to_latex
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece

PAPER = "OC-CLIP: Object-Centric Binding in Contrastive Language-Image Pre-training"


class Column(NamedTuple):
    """A column, and where our number for it is among those of a benchmark."""

    title: str
    benchmark: str
    name: str
    """The name of a group of records, or of a headline."""


class PaperTable(NamedTuple):
    """A table of the paper."""

    number: int
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    """A model and its figures, percent; a row ends where the paper has no further columns."""


SUGARCREPE = PaperTable(
    1,
    "SugarCrepe",
    "Micro, all records alike, and macro, the mean over those of the seven parts that have any, are columns of ours. "
    "The † is the paper's own mark, printed here as there; what it means isn't known here.",
    (
        Column("swap: object", "sugarcrepe", "swap_obj"),
        Column("swap: attribute", "sugarcrepe", "swap_att"),
        Column("add: object", "sugarcrepe", "add_obj"),
        Column("add: attribute", "sugarcrepe", "add_att"),
        Column("replace: object", "sugarcrepe", "replace_obj"),
        Column("replace: attribute", "sugarcrepe", "replace_att"),
        Column("replace: relation", "sugarcrepe", "replace_rel"),
        Column("all: micro", "sugarcrepe", "micro"),
        Column("all: macro", "sugarcrepe", "macro"),
    ),
    (
        ("OpenCLIP, zero-shot", "68.2", "66.2", "82.7", "80.3", "93.8", "82.8", "67.3"),
        ("BLIP, fine-tuned in domain †", "66.2", "76.2", "–", "–", "96.5", "81.9", "68.35"),
        ("XVLM, fine-tuned in domain †", "64.9", "73.9", "–", "–", "95.2", "87.7", "77.4"),
        ("OpenCLIP-FT", "63.1 ± 0.6", "72.4 ± 1.1", "93.4 ± 0.2", "83.1 ± 0.5", "95.4", "87.0 ± 0.6", "75.5 ± 0.6"),
        ("NegCLIP †", "75.2", "75.4", "88.8", "82.8", "92.7", "85.9", "76.5"),
        ("CE-CLIP †", "72.8", "77", "92.4", "93.4", "93.1", "88.8", "79"),
        ("CC-CLIP †", "68.6", "73.6", "86.7", "90.3", "95.9", "87.9", "76.2"),
        ("DAC-LLM", "75.1", "74.1", "89.7", "97.7", "94.4", "89.3", "84.4"),
        ("DAC-SAM", "71.8", "75.3", "87.5", "95.5", "91.2", "85.9", "83.9"),
        ("OC-CLIP B-16", "76.3 ± 0.7", "87.1 ± 0.2", "91.3", "83.8 ± 1.0", "93.9 ± 0.4", "88.3 ± 0.1", "77.0 ± 0.2"),
        (
            "OC-CLIP B-14",
            "80.8 ± 0.7",
            "88.5 ± 0.4",
            "93.0 ± 0.3",
            "83.8 ± 1.1",
            "95.7 ± 0.4",
            "88.8 ± 0.6",
            "80.2 ± 0.2",
        ),
    ),
)

SPATIAL = PaperTable(
    2,
    "Spatial relationships",
    "What'sUp's own table 1 has the mean of one object and of two (macro). The paper doesn't say of which its figures "
    "are; columns without its figures are ours.",
    (
        Column("COCO-spatial: macro", "coco-spatial", "macro over one object and two"),
        Column("GQA-spatial: macro", "gqa-spatial", "macro over one object and two"),
        Column("COCO-spatial: micro", "coco-spatial", "micro"),
        Column("GQA-spatial: micro", "gqa-spatial", "micro"),
        Column("COCO-spatial: one object", "coco-spatial", "one object"),
        Column("COCO-spatial: two objects", "coco-spatial", "two objects"),
        Column("GQA-spatial: one object", "gqa-spatial", "one object"),
        Column("GQA-spatial: two objects", "gqa-spatial", "two objects"),
    ),
    (
        ("XVLM", "73.6", "67"),
        ("BLIP", "56.4", "52.6"),
        ("NegCLIP", "46.4", "46.7"),
        ("OpenCLIP-FT", "45.6 ± 0.2", "49.1 ± 1.1"),
        ("OC-CLIP B-16", "90.1", "93.9"),
        ("OC-CLIP B-14", "93.5", "95.6"),
    ),
)

WINOGROUND = PaperTable(
    3,
    "Winoground",
    "Chance is 25, 25 and 16.7.",
    (
        Column("text", "winoground", "text"),
        Column("image", "winoground", "image"),
        Column("group", "winoground", "group"),
    ),
    (
        ("OpenCLIP-FT (COCO)", "25.6", "11.5", "7.8"),
        ("NegCLIP", "29.5", "10.5", "8.0"),
        ("OC-CLIP B-16 (COCO)", "36.8 ± 3.1", "14.5 ± 0.6", "10.6 ± 1.5"),
        ("OC-CLIP B-14 (COCO)", "37.8 ± 1.1", "15.6 ± 1.7", "10.2 ± 1.1"),
    ),
)

CHECKLIST_AND_ARO = PaperTable(
    5,
    "VL-CheckList and ARO",
    "Ours: of VL-CheckList the mean over files, data sets and kinds in turn, as by its authors, of attribution the "
    "mean over pairs of attributes (macro), of relation that over relations (macro), of word orders all records alike "
    "(micro). BLIP's row repeats CLIP's figures for ARO, and 68.9.7 is printed so.",
    (
        Column("VL-CheckList: object", "vl-checklist", "Object"),
        Column("VL-CheckList: relation", "vl-checklist", "Relation"),
        Column("VL-CheckList: attribute", "vl-checklist", "Attribute"),
        Column("ARO: attribution", "vg-attribution", "macro over attributes"),
        Column("ARO: relation", "vg-relation", "macro over relations"),
        Column("ARO: COCO-order", "coco-order", "all"),
        Column("ARO: Flickr-order", "flickr-order", "all"),
    ),
    (
        ("CLIP", "80.0", "63.0", "67.4", "63.2", "60.0", "47.9", "60.2"),
        ("BLIP", "82.2", "70.5", "75.2", "63.2", "60.0", "47.9", "60.2"),
        ("XVLM", "85.8", "70.4", "75.1", "73.4", "86.8", "–", "–"),
        ("CLIP-SVLC", "85.0", "68.9.7", "72.0", "73.0", "80.6", "84.7", "91.7"),
        ("NegCLIP", "84.1", "63.5", "70.9", "71", "81", "86", "91"),
        ("CE-CLIP", "84.6", "71.8", "72.6", "76.4", "83.0", "–", "–"),
        ("DAC-LLM 500k", "66.5", "56.8", "57.4", "63.8", "60.1", "50.2", "61.6"),
        ("DAC-LLM 3M", "87.3", "86.4", "77.3", "73.9", "81.3", "94.5", "95.7"),
        ("DAC-SAM 3M", "88.5", "89.7", "75.8", "70.5", "77.2", "91.2", "93.9"),
        ("DCI", "80.7", "70.1", "68.7", "67.6", "76.2", "88.6", "91.3"),
        ("DCI neg", "88.4", "61.3", "70.4", "62.0", "57.3", "39.4", "44.6"),
        ("OC-CLIP", "84.5", "73.9", "73.7", "82.0", "86.5", "94.2", "84.8"),
    ),
)

TABLES = (SUGARCREPE, SPATIAL, WINOGROUND, CHECKLIST_AND_ARO)


THEIRS = " (theirs)"
Number = tuple[str, str, str]  # a benchmark, "group" or "headline", and its name
PART = "*"  # behind a number that isn't of all records
# Value of a number, what a row of it is called.
ROWS = {"official": "here: official rule", "neutral": "here: ties shared", "tie_rate": "here: ties"}


def percent(value: float | None) -> str:
    """A fraction as percent; a dash for none."""
    return DASH if value is None or pd.isna(value) else f"{100 * value:.1f}"


def paper_tables(
    table: pd.DataFrame, pieces: Sequence[BenchmarkPiece], left_out: Mapping[str, str], guessed: Mapping[Number, float]
) -> list[tuple[PaperTable, pd.DataFrame]]:
    """The paper's tables of which any benchmark was scored; `table` is that of results.csv."""
    return [
        (layout, filled(layout, table, pieces, left_out, guessed))
        for layout in TABLES
        if set(table.benchmark) & {column.benchmark for column in layout.columns}
    ]


def filled(
    layout: PaperTable,
    table: pd.DataFrame,
    pieces: Sequence[BenchmarkPiece],
    left_out: Mapping[str, str],
    guessed: Mapping[Number, float],
) -> pd.DataFrame:
    """One table: our models, each by the official rule, with ties shared and with its ties, then the paper's."""
    here = list(our_rows(layout, table, pieces, left_out))
    source = f"OC-CLIP paper, table {layout.number}"
    theirs = [
        [f"{model}{THEIRS}", source, *(figure for _, figure in zip_longest(layout.columns, figures, fillvalue=DASH))]
        for model, *figures in layout.rows
    ]
    kinds = ("headline", "group")
    found = [
        next((one for kind in kinds if (one := guessed.get((c.benchmark, kind, c.name)))), None) for c in layout.columns
    ]
    chance = ["chance", "", *map(percent, found)]
    return pd.DataFrame(
        [*here, chance, *theirs], columns=["model", "source", *(column.title for column in layout.columns)]
    )


def our_rows(
    layout: PaperTable, table: pd.DataFrame, pieces: Sequence[BenchmarkPiece], left_out: Mapping[str, str]
) -> Iterator[list[str]]:
    """Three rows a model; a dash and a word where there is no number."""
    names = {(piece.model, piece.label): piece.name for piece in pieces}
    titles = {piece.model: piece.tested.title for piece in pieces}
    for model in titles:
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
    """The text that follows a number that covers only some records: a mark, and the count of these."""
    return f"{PART} (n {number['n']:.0f})"


def number_of(scored: pd.DataFrame, column: Column) -> pd.Series | None:
    """The number of a column among a model's; None where it wasn't run, or has no such group."""
    rows = scored[(scored.benchmark == column.benchmark) & (scored.name == column.name)]
    return None if rows.empty else rows.iloc[0]


def latex(tables: Sequence[tuple[PaperTable, pd.DataFrame]]) -> str:
    """All tables in LaTeX."""
    caption = f'{{}}, laid out as table {{}} of "{PAPER}"; rows marked{THEIRS} are its figures. Percent. {{}}'
    texts = (to_latex(frame, caption.format(table.title, table.number, table.note)) for table, frame in tables)
    return "\n".join(texts)
