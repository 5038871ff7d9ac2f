"""Tables of texts as HTML, by pandas' Styler; accuracies have the colours of figures."""

import re
import zlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup
from pandas.io.formats.style import Styler

from menagerie.studies.report.figures import ACCURACY, colour_at, ink

NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?![\d.])(?!.*, [a-z])")


def styled_table(frame: pd.DataFrame, shaded: int | None = None, chances: Mapping[str, float] | None = None) -> Markup:
    """Return a table of texts as HTML. Columns from `shaded` on are accuracies in percent, which get colours; `chances`
    has chance by column where it isn't 50."""
    shown = frame.reset_index(drop=True).astype(str)
    titles, shown.columns = list(map(str, frame.columns)), range(frame.shape[1])  # two columns may have one name
    name = f"{zlib.crc32(shown.to_csv().encode()):x}"  # the same page has the same bytes
    styler = Styler(shown, uuid=name, cell_ids=False).hide(axis="index")
    styler.format_index(lambda column: titles[column], axis=1, escape="html").format(escape="html")
    for column in range(frame.shape[1] if shaded is None else shaded, frame.shape[1]):
        chance = (chances or {}).get(titles[column], 50)
        styler.map(accuracy_style, chance=chance, subset=[column])
    return Markup(styler.to_html())


def accuracy_style(cell: str, chance: float | int = 50) -> str:
    """The style of a table cell that begins with an accuracy in percent: a colour on the scale of figures, with
    `chance` in the middle. A cell with a remark, such as "50.0, no skill", gets no colour."""
    number = NUMBER.match(cell)
    if number is None:
        return ""
    ends = 0, chance, max(100, chance + 1e-9)  # 100 is in the middle where it is chance
    colour = colour_at(float(np.interp(float(number[1]), ends, (0, 50, 100))), ACCURACY)
    return f"background: {colour}; color: {ink(colour)}"
