"""Results as pandas frames: a tidy row for each score, and tables of any columns against any others.

Conversion to text comes last (`pivot_texts`): compute with frames of numbers, and write frames of texts to CSV, LaTeX
and pages. Accuracies of models that prefer the same caption whatever the image are flagged (`FLAG`), high or low."""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS

# Names of rows or columns, in order; None for all.
Labels = Sequence[str] | pd.Index | None
DASH = "–"  # nothing exists: no scenes, no such task
WAITING = "…"  # nothing is finished yet
ESCAPES = str.maketrans(
    {"\\": r"\textbackslash{}", **{c: "\\" + c for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\^{}"}
)


class Pivot(NamedTuple):
    """Two tables of the same shape: means over all other labels, such as seeds, and standard deviations."""

    mean: pd.DataFrame
    deviation: pd.DataFrame


def pivot(frame: pd.DataFrame, index: Sequence[str], columns: Sequence[str], value: str = "accuracy") -> Pivot:
    """Make a row for each combination of `index` and a column for each of `columns`, in the frame's order of values."""
    groups = frame.groupby([*index, *columns], sort=False)[value]

    def position(level: pd.Index) -> pd.Index:
        return pd.Index(pd.Index(frame[level.name].unique()).get_indexer(level))

    tables = (groups.agg(function).unstack(list(columns)) for function in (mean_of_defined, deviation_of_defined))
    return Pivot(*(table.sort_index(key=position).sort_index(axis="columns", key=position) for table in tables))


def mean_of_defined(values: pd.Series) -> float:
    """Return the mean of the defined values, summed without pandas, whose sums may be rounded differently."""
    defined = values.dropna().tolist()
    return statistics.mean(defined) if defined else math.nan


def deviation_of_defined(values: pd.Series) -> float:
    """Return the standard deviation of the defined values; NaN for fewer than two."""
    defined = values.dropna().tolist()
    return statistics.stdev(defined) if len(defined) > 1 else math.nan


def pivot_texts(
    table: Pivot, index: Labels = None, columns: Labels = None, scale: float = 100.0, deviations: bool = False
) -> pd.DataFrame:
    """Turn a pivot into texts with one decimal, by default in percent; `index` and `columns` choose and order its rows
    and columns.

    A row that the pivot lacks is `WAITING`; an undefined value in an existing row is a dash.
    """

    means, spreads = (scale * part.reindex(index=index, columns=columns) for part in table)
    both = zip(means.index, means.to_numpy().tolist(), spreads.to_numpy().tolist(), strict=True)
    texts = [
        list(map(number_text, *(pair if deviations else pair[:1])))
        if label in table.mean.index
        else [WAITING] * len(means.columns)
        for label, *pair in both
    ]
    return pd.DataFrame(texts, means.index, means.columns)


def number_text(value: float, deviation: float = math.nan) -> str:
    """Write a number with one decimal, and its deviation if that is defined; a dash for an undefined number."""
    if math.isnan(value):
        return DASH
    return f"{value:.1f}" + ("" if math.isnan(deviation) else f" ± {deviation:.1f}")


def missing_sign(finished: object) -> str:
    """Return the sign for a missing number: `DASH` if its run is finished, else `WAITING`."""
    return DASH if finished else WAITING


def task_order(task: str) -> tuple[int, str]:
    """Return a sort key for tasks: first those of `PAIR_TASKS` in their order, then all others by name."""
    return (PAIR_TASKS.index(task) if task in PAIR_TASKS else len(PAIR_TASKS), task)


def column_names(frame: pd.DataFrame) -> list[str]:
    """Return the names of columns; names with several levels are joined."""
    return [": ".join(filter(None, name)) if isinstance(name, tuple) else str(name) for name in frame.columns]


def to_rows(frame: pd.DataFrame) -> list[list[str]]:
    """Return a header and rows of texts for page templates."""
    return [column_names(frame), *frame.astype(str).to_numpy().tolist()]


def to_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame, whole or not at all; undefined values are empty cells."""
    write_text(path, frame.to_csv(index=False, header=column_names(frame), lineterminator="\n"))


def to_latex(frame: pd.DataFrame, caption: str) -> str:
    """Return a table environment with booktabs rules; columns of words are aligned left, numbers right."""
    texts = frame.astype(str)
    words = [texts.iloc[:, k].str.contains(r"[^\W\d_]").any() for k in range(texts.shape[1])]
    return (
        texts.map(escape)
        .rename(columns=escape)
        .to_latex(
            index=False,
            caption=escape(caption),
            column_format="".join("l" if word else "r" for word in words),
            multicolumn_format="c",
        )
    )


def escape(text: str) -> str:
    return text.translate(ESCAPES)


def flatten_texts(fields: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested fields by dotted names, as short texts."""
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            texts |= flatten_texts(value, f"{prefix}{name}.")
        else:
            texts[prefix + name] = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return texts


TEXT_SCORE = "text score"
NEAR = 0.05  # a fifth of chance
FLAG = ", same caption"
MEANS = (
    f"same caption: the {TEXT_SCORE} is below {100 * NEAR:.0f} %, where chance is 25: the model prefers the same "
    "caption for an image and its counterfactual. Then its accuracy on swaps, high or low, says nothing of binding"
)


def meaning_of_flags(cells: pd.DataFrame) -> str:
    """Return the meaning of the flag if some cell has it; else an empty text."""
    return MEANS if cells.astype(str).apply(lambda column: column.str.endswith(FLAG)).any(axis=None) else ""


def print_table(header: Iterable[str], rows: Iterable[Iterable[str]], title: str) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
