"""Figures of a split's matrices."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.figures import colour_at, ink
from menagerie.generators.inspection.co_occurrence import ROLES, Counts

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

CELL = 0.3  # inches: with 20 animals a matrix is as wide as the page

# A palette for colour-blind readers, and letters for printing in grey.
ROLE_COLOURS = ("#0072b2", "#56b4e9", "#e69f00", "#cc79a7", "#d55e00", "#009e73", "#eeeeee")
ROLE_LETTERS = ("S", "T", "U", "V", "H", "O", "")


def count_matrix(
    table: Counts, rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str], counted: str
) -> Figure:
    """Counts as colours and numbers; zero is grey. `axes` are the labels of rows and columns."""
    figure, axis = framed(rows, columns, axes)
    most = max(int(table.max(initial=0)), 1)
    scale = {"cmap": "viridis", "vmin": 0, "vmax": most}
    image = axis.imshow(np.ma.masked_equal(table, 0), **scale)
    for (row, column), count in np.ndenumerate(table):
        if count:
            write(axis, row, column, str(count), ink(colour_at(count, scale)))
    inch = 1 / figure.get_figwidth()
    place = figure.add_axes((1 + 0.15 * inch, 0, 0.15 * inch, 1))
    bar = figure.colorbar(image, cax=place, ticks=MaxNLocator(6, integer=True))
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"{counted}; grey: none", fontsize=8)
    return figure


def role_matrix(table: Int64[np.ndarray, "n n"], animals: Sequence[str]) -> Figure:
    """The role of every animal pair as colour and letter; the legend counts the pairs of each."""
    figure, axis = framed(animals, animals, ("", ""))
    shown = np.ma.masked_where(np.eye(len(animals), dtype=bool), table)
    axis.imshow(shown, cmap=ListedColormap(ROLE_COLOURS), vmin=-0.5, vmax=len(ROLES) - 0.5)
    axis.set_facecolor("white")
    for (row, column), role in np.ndenumerate(table):
        if row != column:
            write(axis, row, column, ROLE_LETTERS[role], ink(ROLE_COLOURS[role]))
    counts = np.bincount(table[np.triu_indices(len(animals), 1)], minlength=len(ROLES))
    legend = zip(ROLE_COLOURS, ROLE_LETTERS, ROLES, counts, strict=True)
    keys = [
        Patch(facecolor=colour, edgecolor="0.6", label=f"{letter}  {role} ({count})".strip())
        for colour, letter, role, count in legend
        if count
    ]
    axis.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    return figure


def framed(rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str]) -> tuple[Figure, Axes]:
    """An empty matrix that fills its figure, with row and column names; cells have a fixed size."""
    figure = Figure((CELL * len(columns), CELL * len(rows)))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_facecolor("0.9")
    # Names may not be trusted: text between dollar signs is no formula.
    axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8, parse_math=False)
    axis.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axis.set_ylabel(axes[0], fontsize=9)
    axis.set_xlabel(axes[1], fontsize=9)
    axis.xaxis.set_label_position("top")
    return figure, axis


def write(axis: Axes, row: int, column: int, text: str, colour: str) -> None:
    """A short text in a cell."""
    axis.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
