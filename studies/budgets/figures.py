"""Accuracy against compute: a panel for each split, a line for each model, a band over its seeds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np

from menagerie.envs.core.figures import CHANCE, chance_line, legend_above, line_style
from menagerie.studies.analysis.words import TITLES
from menagerie.studies.budgets.points import Line, Point
from menagerie.studies.frame.cells import title_of

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

SIGNS = (
    Line2D([], [], label="chance", **CHANCE),
    Line2D([], [], color="0.4", marker="o", markersize=8, linestyle="none", label="large: chosen"),
)
WIDTH, HEIGHT = 4.4, 3.4  # inches of a panel of the first figure
SMALL_WIDTH, SMALL_HEIGHT = 2.6, 2.3
WIDEST = 9.8  # as wide as a page
WIDE = 5  # from so many times on, round numbers of a logarithm are ticks enough


class Scale(NamedTuple):
    """A measure of compute, for the axes of figures."""

    name: str
    of: Callable[[Point], float]


FLOPS = Scale("operations of training (TFLOP)", lambda point: point.cost.flops / 1e12)
OTHERS = (
    Scale("images seen (thousands)", lambda point: point.cost.images / 1000),
    Scale("CPU-seconds of training", lambda point: point.cost.cpu_seconds),
)


def compute_figure(lines: Sequence[Line], bar: float, judged: dict[str, str]) -> Figure:
    """Accuracy (%) on what is unseen by operations, a panel a split; `judged` says which tests those are."""
    splits = list(dict.fromkeys(line.split for line in lines))
    figure = Figure((WIDTH * len(splits) + 0.4, HEIGHT), layout="constrained")
    rows = figure.subplots(1, len(splits), squeeze=False, sharey=True)
    for axis, split in zip(rows[0], splits, strict=True):
        draw(axis, lines, split, FLOPS)
        axis.set_title(f"{split}\n{judged[split]}", fontsize=9, parse_math=False)
        axis.axhline(100 * bar, color="0.6", linewidth=1, linestyle="--")
        axis.set_xlabel(FLOPS.name, fontsize=9)
    finish(rows, "accuracy (%)")
    level = Line2D([], [], color="0.6", linestyle="--", label=f"the bar, {100 * bar:.0f} %")
    legend_above(figure, [*keys(lines), level, *SIGNS])
    return figure


def other_scales(lines: Sequence[Line]) -> Figure:
    """The same by images seen and by processor time: a line of panels for each."""
    splits = list(dict.fromkeys(line.split for line in lines))
    figure = Figure((SMALL_WIDTH * 1.5 * len(splits) + 0.4, SMALL_HEIGHT * len(OTHERS)), layout="constrained")
    rows = figure.subplots(len(OTHERS), len(splits), squeeze=False, sharey=True)
    for row, scale in zip(rows, OTHERS, strict=True):
        for axis, split in zip(row, splits, strict=True):
            draw(axis, lines, split, scale)
            axis.set_title(split, fontsize=9)
            axis.set_xlabel(scale.name, fontsize=8)
    finish(rows, "accuracy (%)")
    legend_above(figure, keys(lines))
    return figure


def all_tests(lines: Sequence[Line], tests: dict[str, Sequence[str]]) -> Figure:
    """Accuracy on swaps of validation and every test that has any, by operations: a line of panels for each split."""
    tests = {split: [name for name in names if has_records(lines, split, name)] for split, names in tests.items()}
    columns = max(map(len, tests.values()))
    figure = Figure((min(SMALL_WIDTH * columns, WIDEST), SMALL_HEIGHT * len(tests)), layout="constrained")
    rows = figure.subplots(len(tests), columns, squeeze=False, sharey=True)
    for row, (split, names) in zip(rows, tests.items(), strict=True):
        for axis in row[len(names) :]:
            axis.axis("off")
        for axis, test in zip(row, names, strict=False):
            draw(axis, lines, split, FLOPS, test)
            axis.set_title(TITLES.get(test) or f"{split}:\n{test}", fontsize=8, parse_math=False)
    finish(rows, "accuracy (%)")
    figure.supxlabel(FLOPS.name, fontsize=9)
    legend_above(figure, keys(lines))
    return figure


def has_records(lines: Sequence[Line], split: str, test: str) -> bool:
    """Whether a test has swaps, as far as models are finished there."""
    points = [point for line in lines if line.split == split for point in line.points]
    return any(point.accuracies(test) for point in points) or not points


def draw(axis: Axes, lines: Sequence[Line], split: str, scale: Scale, test: str = "") -> None:
    """The models at one split: means over seeds with a band from the lowest seed to the highest, and larger what
    validation chose; on one test, or on what is judged."""
    here = [line for line in lines if line.split == split]
    for number, line in enumerate(here):
        style, drawn = line_style(number), []
        for point in line.points:
            values = point.accuracies(test) if test else [100 * share for share in point.seeds]
            if values and scale.of(point) > 0:
                drawn.append((scale.of(point), values, point is line.best))
        x = [where for where, _, _ in drawn]
        means = [sum(values) / len(values) for _, values, _ in drawn]
        axis.plot(x, means, markersize=4, linewidth=1.5, **style)
        lows, highs = ([function(values) for _, values, _ in drawn] for function in (min, max))
        axis.fill_between(x, lows, highs, color=style["color"], alpha=0.18, linewidth=0)
        best = [(where, mean) for (where, _, chosen), mean in zip(drawn, means, strict=True) if chosen]
        axis.plot(*zip(*best, strict=True) if best else ([], []), linestyle="none", markersize=8, **style)
    every = [where for drawn in axis.get_lines() for where in drawn.get_xdata()]
    if not every:
        axis.text(0.5, 0.5, "no records", transform=axis.transAxes, ha="center", fontsize=8)
        axis.axis("off")
        return
    axis.set_xscale("log")
    wide = max(every) > WIDE * min(every)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9) if wide else MaxNLocator(3))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def finish(rows: np.ndarray, name: str) -> None:
    """Names, limits and chance of all panels, once they are drawn: they share limits, which stay as they are set."""
    for axis in rows.flat:
        if not axis.axison:
            continue
        chance_line(axis)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25)
        axis.set_ylim(None, 101)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in rows[:, 0]:
        axis.set_ylabel(name, fontsize=9)


def keys(lines: Sequence[Line]) -> list[Line2D]:
    models = list(dict.fromkeys(line.model for line in lines))
    return [Line2D([], [], label=title_of(model), **line_style(number)) for number, model in enumerate(models)]
