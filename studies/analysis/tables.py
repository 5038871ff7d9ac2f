"""Tables as CSV, LaTeX and on the console, and their signs. Accuracies of models that prefer the same caption whatever
the image are flagged (`FLAG`), high or low."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS

DASH = "–"  # nothing exists: no scenes, no such task
WAITING = "…"  # nothing is finished yet
ESCAPES = str.maketrans(
    {"\\": r"\textbackslash{}", **{c: "\\" + c for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\^{}"}
)


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


def to_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame, whole or not at all; undefined values are empty cells."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


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
