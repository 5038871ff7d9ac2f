"""Training curves of a study's cells: loss, validation, learning rate and speed, with a column of panels per model."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from menagerie.studies.frame.figures import STROKES, style_axes
from menagerie.studies.report.figures import chance_line, legend_above, model_label
from menagerie.studies.runs.training_log import read_training

# Distinct for every common kind of colour vision (Okabe and Ito, 2008), on white; further lines differ by stroke.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MOST_BESIDE = 3  # models beside each other
MOST_LINES = 12  # of a panel; with more, seeds are averaged
POINTS = 100  # of a curve of all steps, at least; each is the mean of neighbouring steps
PERCENT = "validation"
# Rows of panels by the column that they show: what they are called, and their height.
PANELS = {
    "loss": ("loss", 3.0),
    PERCENT: ("validation (%)", 3.0),
    "learning_rate": ("learning rate", 1.4),
    "images_per_second": ("images/s", 1.4),
}

Column = Float64[np.ndarray, " _"]  # runs have different numbers of steps
Table = dict[str, Column]


class RunCurve(NamedTuple):
    """One cell: its label in the figure, and its folder. Cells with the same label differ only by seed and look the
    same."""

    model: str
    label: str
    folder: Path


def training_curves(curves: Sequence[RunCurve], chance: float = 50.0) -> Figure | None:
    """Draw the curves of all cells that have a training log; None if no cell has one. `chance`, in percent, is that of
    validation."""
    logged = [(curve, read_training(curve.folder)) for curve in curves]
    logged = [(curve, table) for curve, table in logged if table]
    if not logged:
        return None
    models = list(dict.fromkeys(curve.model for curve, _ in logged))
    if max(Counter(curve.model for curve, _ in logged).values()) > MOST_LINES:
        logged = average_seeds(logged)
    labels = list(dict.fromkeys(curve.label for curve, _ in logged))
    columns = min(len(models), MOST_BESIDE)
    lines = math.ceil(len(models) / columns)
    size = max(3.1 * columns, 6.0) + 0.5, 7.6 * lines
    figure = Figure(size, layout="constrained")
    axes = curve_panels(figure, lines, columns)
    for axis in axes[:, len(models) :].flat:
        axis.axis("off")
    axes = axes[:, : len(models)]
    styles = {
        label: {"color": COLOURS[k % len(COLOURS)], "linestyle": STROKES[k // len(COLOURS) % len(STROKES)]}
        for k, label in enumerate(labels)
    }
    for curve, table in logged:
        for row, name in zip(axes, PANELS, strict=True):
            draw_curve(row[models.index(curve.model)], name, table, label=curve.label, **styles[curve.label])
    for column, model in zip(axes.T, models, strict=True):
        column[0].set_title(model_label(model), fontsize=10, parse_math=False)
        column[-1].set_xlabel("step", fontsize=9)
        column[-1].tick_params(labelbottom=True)  # which is hidden where more panels follow below
    for row, (column, (name, _)) in zip(axes, PANELS.items(), strict=True):
        for axis in row:
            finish_curves(axis, column, chance)
        for axis in row[::columns]:
            axis.set_ylabel(name, fontsize=9)
    legend_above(figure, [Line2D([], [], label=label, **style) for label, style in styles.items()])
    return figure


def average_seeds(logged: Sequence[tuple[RunCurve, Table]]) -> list[tuple[RunCurve, Table]]:
    """Average cells that have the same label and steps into one line; others are left as they are."""
    together: dict[tuple[str, str, bytes], list[tuple[RunCurve, Table]]] = {}
    for curve, table in logged:
        together.setdefault((curve.model, curve.label, table["step"].tobytes()), []).append((curve, table))
    return [
        (same[0][0], {name: np.mean([table[name] for _, table in same], axis=0) for name in same[0][1]})
        for same in together.values()
    ]


def equal_losses_note(curves: Sequence[RunCurve]) -> str:
    """Write a sentence on whether any two runs have the same losses; empty for fewer than two runs."""
    losses = [tuple(table["loss"]) for curve in curves if (table := read_training(curve.folder))]
    if len(losses) < 2:
        return ""
    if len(set(losses)) == len(losses):
        return "No two of these runs have the same losses."
    return "Some of these runs have the same losses: what they differ in changes none of their steps."


def curve_panels(figure: Figure, lines: int, columns: int) -> np.ndarray:
    """Make the axes, by kind of panel and by model. Models are beside each other, on several lines if they are many;
    panels of a model are below each other."""
    heights = [height for _, height in PANELS.values()]
    axes = figure.subplots(len(heights) * lines, columns, squeeze=False, sharex="col", height_ratios=heights * lines)
    axes = axes.reshape(lines, len(heights), columns).transpose(1, 0, 2).reshape(len(heights), -1)
    for row in axes[1:]:  # losses are of several kinds, each with a scale of its own
        for number, axis in enumerate(row[1:], start=1):
            axis.sharey(row[0])
            axis.tick_params(labelleft=number % columns == 0)
    return axes


def draw_curve(axis: Axes, column: str, table: dict[str, Column], **style: Any) -> None:
    """Draw one cell's curve in one panel."""
    steps, values = table["step"], table[column]
    if column == PERCENT:
        seen = ~np.isnan(values)
        axis.plot(steps[seen], 100 * values[seen], marker="o", markersize=3, linewidth=1.2, clip_on=False, **style)
    else:
        axis.plot(thin_out(steps), thin_out(values), linewidth=1.2, **style)


def finish_curves(axis: Axes, column: str, chance: float) -> None:
    """Set the limits of one panel."""
    style_axes(axis)
    if column == PERCENT:
        chance_line(axis, percent=chance)
        axis.set_ylim(None, 101)
    else:
        axis.set_ylim(bottom=min(0.0, axis.dataLim.y0))


def thin_out(values: Column) -> Float64[np.ndarray, " points"]:
    """Average neighbours, so that fewer than twice `POINTS` are left."""
    size = max(1, len(values) // POINTS)
    return np.array([values[start : start + size].mean() for start in range(0, len(values), size)])
