"""Heat maps in the layout of OC-CLIP's figure 2, with the numbers in the squares."""

from collections.abc import Collection

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from menagerie.envs.core.figures import ACCURACY, bar_above, chance_line, colour_at, ink
from menagerie.studies.analysis.tables import gap, number
from menagerie.studies.frame.figures import WIDEST, Drawn, Values, axis_name, heading
from menagerie.studies.frame.layout import Key, awaited, called, keys, places
from menagerie.studies.frame.parts import HeatMap

NAMES = 1.7  # inches for what stands beside the panels
BAR = "accuracy (%), dotted line: chance"

Squares = list[list[Key]]


def heat_map(part: HeatMap) -> Drawn:
    """Accuracy (%): lines of panels for the labels of panels but the last, which goes to the right.

    A place without records shows a dash, one whose run isn't finished other dots.
    """
    names = [*part.panels, *filter(None, [part.y, part.x])]
    found, every = part.records.estimates(names), places(part.records)
    waiting = awaited(every, names)
    down = [key for key in keys(every, part.panels[:-1]) if any(k[: len(key)] == key for k in found)] or [()]
    right = keys(every, part.panels[-1:]) or [()]
    across, up = sides_of(part, part.x), sides_of(part, part.y)
    figure, blocks = blocks_of(len(down), len(right), (len(across), len(up)))
    for line, block in zip(down, blocks, strict=True):
        name = heading(part, part.panels[:-1], line)
        for place, (panel, axis) in enumerate(zip(right, block.flat, strict=False)):
            image = draw_squares(axis, [[(*line, *panel, *y, *x) for x in across] for y in up], found, waiting)
            axis.set_xticks(range(len(across)), [called(part, part.x, *x) if x else "" for x in across])
            axis.set_yticks(range(len(up)), [called(part, part.y, *y) if y else "" for y in up])
            if len(block) > 1 or block is blocks[0]:
                axis.set_title(heading(part, part.panels[-1:], panel), fontsize=10, parse_math=False)
            if place % block.shape[1] == 0:
                axis.set_ylabel(name, fontsize=9, parse_math=False, rotation=0, ha="right", va="center")
    figure.supylabel(axis_name(part.y), fontsize=9)
    figure.supxlabel(axis_name(part.x), x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)
    bar = bar_above(figure, image, [axis for block in blocks for axis in block.flat], BAR, width=1.6)
    chance_line(bar.ax, "x", color="white", linewidth=2)
    return Drawn(figure, names, found)


def sides_of(part: HeatMap, name: str) -> list[Key]:
    """The values of a side, numbers upwards; one without a name has a single one."""
    values = part.records.labels(name) if name else []
    numbers = all(isinstance(value, int | float) for value in values)
    return [(value,) for value in (sorted(values) if numbers else values)] or [()]


def blocks_of(down: int, right: int, squares: tuple[int, int]) -> tuple[Figure, list[np.ndarray]]:
    """A figure with an array of axes for each of `down` blocks of `right` panels, of so many squares across and up."""
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


def draw_squares(axis: Axes, squares: Squares, found: Values, waiting: Collection[Key]) -> AxesImage:
    """One heat map with its numbers: mean, and deviation where there are several seeds."""
    values = np.array([[100 * found[key].value if key in found else np.nan for key in row] for row in squares])
    image = axis.imshow(values, **ACCURACY, origin="lower", aspect="auto")
    axis.set_facecolor("0.85")
    for y, row in enumerate(squares):
        for x, key in enumerate(row):
            text, colour = gap(key not in waiting), "black"
            if its := found.get(key):
                text = number(100 * its.value) + ("" if np.isnan(its.deviation) else f"\n±{100 * its.deviation:.1f}")
                colour = ink(colour_at(100 * its.value, ACCURACY))
            axis.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    return image
