"""Figures of numbers in rows or squares: bars, dots with their intervals, and heat maps."""

from collections.abc import Sequence
from itertools import cycle, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from menagerie.studies.analysis.tables import missing_sign, number_text
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.figures import (
    DASHED,
    WIDEST,
    DrawnFigure,
    axis_name,
    heading,
    panel_axes,
    panel_chance,
    panels_of,
    style_axes,
)
from menagerie.studies.frame.layout import Key, PartNumbers, title, value_words, varying_labels
from menagerie.studies.frame.parts import Bars, HeatMap
from menagerie.studies.report.figures import ACCURACY, COLOURS, bar_above, chance_line, colour_at, ink, legend_above

WIDTH, NAMES = 2.2, 1.7  # inches: of a panel of bars, and of the row names beside it
PALE = "A pale bar: the model prefers the same caption whatever the image, so the bar says nothing of binding."
BAR = "accuracy (%), dotted line: chance"
ROW = 0.24  # inches of a row, for each colour in it


def draw_bars(part: Bars) -> DrawnFigure:
    """Draw a bar or a dot for each row and colour."""
    numbers = PartNumbers(part, [*part.panels, *part.rows, *filter(None, [part.colour])])
    rows, panels = numbers.rows(part.rows), panels_of(part, numbers.found)
    colours = part.records.labels(part.colour) if part.colour else [None]
    size = (WIDTH, ROW * len(colours) * len(rows) + 0.75)
    figure, axes = panel_axes(len(panels), size, NAMES, sharex=True, sharey=True)
    dotted, seeds = part.dots or part.against is not None, seeds_of(numbers)
    for axis, panel in zip(axes, panels, strict=True):
        axis.set_title(heading(part, part.panels, panel), fontsize=9, parse_math=False)
        for (y, row), (turn, colour) in product(enumerate(rows), enumerate(colours)):
            key = (*panel, *row, *([colour] if part.colour else []))
            at, shade = y + 0.8 * ((turn + 0.5) / len(colours) - 0.5), COLOURS[turn % len(COLOURS)]
            if dotted:
                draw_dot(axis, numbers.found.get(key), at, shade, seeds.get(key, ()))
            else:
                draw_bar(axis, numbers, key, at, shade, 0.72 / len(colours))
        finish_bars(axis, part, dotted, panel)
    name_rows(part, figure, axes, rows)
    if part.colour:
        texts = [title(part, [part.colour], (value,)) for value in colours]
        style = {"linestyle": "none", "marker": "s"}
        legend_above(figure, [Line2D([], [], label=text, color=c, **style) for text, c in zip(texts, cycle(COLOURS))])
    pale = numbers.liked & numbers.found.keys() and not dotted
    return DrawnFigure(figure, numbers.names, numbers.found, PALE if pale else "")


def seeds_of(numbers: PartNumbers) -> dict[Key, list[float]]:
    """Return the accuracies of single seeds for each key, over all their records; empty if the part shows none."""
    part, scores = numbers.part, numbers.part.records.scores
    if not part.dots or numbers.against or not len(scores):
        return {}
    names = [*numbers.names]
    known = scores.dropna(subset="accuracy").assign(right=lambda row: row["accuracy"] * row["n"])
    pooled = known.groupby(list(dict.fromkeys([*names, "seed"])), sort=False)[["right", "n"]].sum()
    return {key: its.tolist() for key, its in (pooled["right"] / pooled["n"]).groupby(names, sort=False)}


def draw_bar(axis: Axes, numbers: PartNumbers, key: Key, y: float, colour: str, height: float) -> None:
    """Draw a number as a bar with its deviation. The bar is pale if the model prefers the same caption whatever the
    image. For a missing number only its sign is written."""
    its = numbers.found.get(key)
    text = (
        missing_sign(key not in numbers.awaited) if its is None else number_text(100 * its.value, 100 * its.deviation)
    )
    axis.text(103, y, text, va="center", fontsize=8)
    if its is not None:
        axis.barh(y, 100 * its.value, height=height, color=colour, alpha=0.35 if key in numbers.liked else 1)
        if not np.isnan(its.deviation):
            axis.errorbar(100 * its.value, y, xerr=100 * its.deviation, color="0.2", linewidth=1, capsize=2)


def draw_dot(axis: Axes, its: Estimate | None, y: float, colour: str, seeds: Sequence[float]) -> None:
    """Draw a number as a dot, with its interval as a line and its seeds as pale dots."""
    if its is None:
        return
    if len(seeds) > 1:
        axis.plot([100 * value for value in seeds], [y] * len(seeds), "o", color=colour, alpha=0.35, markersize=4)
    axis.plot([100 * its.value], [y], "o", color=colour, markersize=5)
    axis.plot([100 * its.low, 100 * its.high], [y, y], color=colour, linewidth=1.5)


def finish_bars(axis: Axes, part: Bars, dotted: bool, panel: Key) -> None:
    """Set the limits of a panel; draw a line at chance, or at 0 for differences, and one at the value of `beside`."""
    style_axes(axis)
    if not dotted:
        axis.grid(visible=False)
        axis.tick_params(length=0)
        axis.spines[["left"]].set_visible(False)
        axis.set_xlim(0, 100)
    if part.against is not None:
        axis.axvline(0, color="0.4", linewidth=1)
    else:
        level = panel_chance(part, dict(zip(part.panels, panel, strict=True)))
        chance_line(axis, "x", percent=level, stretch=not dotted)
    beside = part.beside.estimates([*part.panels]) if part.beside else {}
    if panel in beside:
        axis.axvline(100 * beside[panel].value, **DASHED)


def name_rows(part: Bars, figure: Figure, axes: Sequence[Axes], rows: Sequence[Key]) -> None:
    """Write beside each row its labels (those that vary between rows), and below the axis what the numbers are."""
    shown = varying_labels(rows)
    names = [part.rows[k] for k in shown]
    texts = [title(part, names, tuple(row[k] for k in shown)) for row in rows]
    axes[0].set_yticks(range(len(rows)), texts, parse_math=False)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    for axis in axes:
        axis.tick_params("y", labelsize=9)
    what = "accuracy (%), dotted line: chance" if part.against is None else "percentage points"
    figure.supxlabel(what, x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)


def draw_heat_map(part: HeatMap) -> DrawnFigure:
    """Draw accuracy (%) as squares: the last label of `panels` goes to the right, the others downwards.

    A square without records shows a dash; one whose run isn't finished shows three dots.
    """
    names = [*part.panels, *filter(None, [part.y, part.x])]
    numbers = PartNumbers(part, names)
    found = numbers.found
    down = [key for key in numbers.keys(part.panels[:-1]) if any(k[: len(key)] == key for k in found)] or [()]
    right = numbers.keys(part.panels[-1:]) or [()]
    across, up = side_values(part, part.x), side_values(part, part.y)
    figure, blocks = make_blocks(len(down), len(right), (len(across), len(up)))
    for line, block in zip(down, blocks, strict=True):
        name = heading(part, part.panels[:-1], line)
        for place, (panel, axis) in enumerate(zip(right, block.flat, strict=False)):
            image = draw_squares(axis, [[(*line, *panel, *y, *x) for x in across] for y in up], numbers)
            axis.set_xticks(range(len(across)), [value_words(part, part.x, *x) if x else "" for x in across])
            axis.set_yticks(range(len(up)), [value_words(part, part.y, *y) if y else "" for y in up])
            if len(block) > 1 or block is blocks[0]:
                axis.set_title(heading(part, part.panels[-1:], panel), fontsize=10, parse_math=False)
            if place % block.shape[1] == 0:
                axis.set_ylabel(name, fontsize=9, parse_math=False, rotation=0, ha="right", va="center")
    figure.supylabel(axis_name(part.y), fontsize=9)
    figure.supxlabel(axis_name(part.x), x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)
    bar = bar_above(figure, image, [axis for block in blocks for axis in block.flat], BAR, width=1.6)
    chance_line(bar.ax, "x", color="white", linewidth=2)
    return DrawnFigure(figure, names, found)


def side_values(part: HeatMap, name: str) -> list[Key]:
    """Return the values of a side of a heat map, numbers in rising order; a side without a label has one empty
    value."""
    values = part.records.labels(name) if name else []
    numbers = all(isinstance(value, int | float) for value in values)
    return [(value,) for value in (sorted(values) if numbers else values)] or [()]


def make_blocks(down: int, right: int, squares: tuple[int, int]) -> tuple[Figure, list[np.ndarray]]:
    """Make a figure with an array of axes for each of `down` blocks of `right` panels. `squares` are the numbers of
    squares in a panel, across and up."""
    width = 1.0 + 0.85 * squares[0]
    columns = max(1, min(right, int((WIDEST - NAMES) / width)))
    lines = -(-right // columns)
    height = (0.8 if lines > 1 else 0.5) + 0.62 * squares[1]
    figure = Figure((width * columns + NAMES, height * lines * down + 1.3), layout="constrained")
    blocks = np.split(figure.subplots(lines * down, columns, squeeze=False), down)
    for block in blocks:
        for axis in block.ravel()[right:]:
            axis.axis("off")
    return figure, blocks


def draw_squares(axis: Axes, squares: list[list[Key]], numbers: PartNumbers) -> AxesImage:
    """Draw one panel's squares with their numbers: the mean, and the deviation if there are several seeds."""
    found = numbers.found
    values = np.array([[100 * found[key].value if key in found else np.nan for key in row] for row in squares])
    image = axis.imshow(values, **ACCURACY, origin="lower", aspect="auto")
    axis.set_facecolor("0.85")
    for y, row in enumerate(squares):
        for x, key in enumerate(row):
            text, colour = missing_sign(key not in numbers.awaited), "black"
            if its := found.get(key):
                text = number_text(100 * its.value) + (
                    "" if np.isnan(its.deviation) else f"\n±{100 * its.deviation:.1f}"
                )
                colour = ink(colour_at(100 * its.value, ACCURACY))
            axis.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    return image
