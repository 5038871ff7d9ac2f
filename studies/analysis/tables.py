"""Tables as HTML, CSV, LaTeX and on the console, their signs, and the colours of accuracies. Accuracies of models that
prefer the same caption whatever the image are flagged (`FLAG`), high or low."""

import math
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from menagerie.envs.core.files import write_text
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS

if TYPE_CHECKING:
    import pandas as pd

DASH = "–"  # nothing exists: no scenes, no such task
WAITING = "…"  # nothing is finished yet
ESCAPES = str.maketrans(
    {"\\": r"\textbackslash{}", **{c: "\\" + c for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\^{}"}
)
TEXT_SCORE = "text score"
NEAR = 0.05  # a fifth of chance
FLAG = ", same caption"
MEANS = (
    f"same caption: the {TEXT_SCORE} is below {100 * NEAR:.0f} %, where chance is 25: the model prefers the same "
    "caption for an image and its counterfactual. Then its accuracy on swaps, high or low, says nothing of binding"
)
# An accuracy at the start of a cell, but not with a remark, such as "50.0, no skill".
NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?![\d.])(?!.*, [a-z])")


def number_text(value: float, deviation: float = math.nan) -> str:
    """Write a number with one decimal, and its deviation if that is defined; a dash for an undefined number."""
    if math.isnan(value):
        return DASH
    return f"{value:.1f}" + ("" if math.isnan(deviation) else f" ± {deviation:.1f}")


def task_order(task: str) -> tuple[int, str]:
    """Return a sort key for tasks: first those of `PAIR_TASKS` in their order, then all others by name."""
    return (PAIR_TASKS.index(task) if task in PAIR_TASKS else len(PAIR_TASKS), task)


def to_csv(path: Path, frame: "pd.DataFrame") -> None:
    """Write a frame, whole or not at all; undefined values are empty cells."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def to_latex(frame: "pd.DataFrame", caption: str) -> str:
    """Return a table environment with booktabs rules; columns of words are aligned left, numbers right."""
    texts = frame.astype(str)
    words = [texts.iloc[:, k].str.contains(r"[^\W\d_]").any() for k in range(texts.shape[1])]
    form = "".join("l" if word else "r" for word in words)
    return texts.map(escape).rename(columns=escape).to_latex(index=False, caption=escape(caption), column_format=form)


def escape(text: str) -> str:
    return text.translate(ESCAPES)


def flatten_texts(fields: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested fields by dotted names, as short texts."""
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            texts |= flatten_texts(value, f"{prefix}{name}.")
        else:
            texts[prefix + name] = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return texts


def meaning_of_flags(cells: "pd.DataFrame") -> str:
    """Return the meaning of the flag if some cell has it; else an empty text."""
    return MEANS if cells.astype(str).apply(lambda column: column.str.endswith(FLAG)).any(axis=None) else ""


def print_table(header: Iterable[str], rows: Iterable[Iterable[str]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def styled_table(
    frame: "pd.DataFrame", shaded: int | None = None, chances: Mapping[str, float] | None = None
) -> Markup:
    """Return a table of texts as HTML. Columns from `shaded` on are accuracies in percent, which get colours; `chances`
    has chance by column where it isn't 50."""
    from pandas.io.formats.style import Styler

    shown = frame.reset_index(drop=True).astype(str)
    titles, shown.columns = list(map(str, frame.columns)), range(frame.shape[1])  # two columns may have one name
    name = f"{zlib.crc32(shown.to_csv().encode()):x}"  # the same page has the same bytes
    styler = Styler(shown, uuid=name, cell_ids=False).hide(axis="index")
    styler.format_index(lambda column: titles[column], axis=1, escape="html").format(escape="html")
    for column in range(frame.shape[1] if shaded is None else shaded, frame.shape[1]):
        styler.map(accuracy_style, chance=(chances or {}).get(titles[column], 50), subset=[column])
    return Markup(styler.to_html())


def accuracy_style(cell: str, chance: float | int = 50) -> str:
    """Return the style of a cell that begins with an accuracy in percent: its colour; none with a remark."""
    number = NUMBER.match(cell)
    if number is None:
        return ""
    ends = 0, chance, max(100, chance + 1e-9)  # 100 is in the middle where it is chance
    colour = colour_at(float(np.interp(float(number[1]), ends, (0, 50, 100))))
    return f"background: {colour}; color: {ink(colour)}"


def colour_at(percent: float | int) -> str:
    """Return the colour of an accuracy from 0 to 100, such as #440154; equal steps look equal."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["viridis"](percent / 100))


def ink(colour: str) -> str:
    """Return black or white, whichever contrasts more with a colour (WCAG)."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"
