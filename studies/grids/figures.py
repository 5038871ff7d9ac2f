"""Figures of a grid: heat maps in the layout of OC-CLIP's figure 2, bars where there is one place, sample images."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from menagerie.envs.core.figures import ACCURACY, COLOURS, bar_above, chance_line, colour_at, ink, short
from menagerie.studies.analysis.tables import NEAR, QUAD, gap
from menagerie.studies.analysis.words import TITLES, wrap
from menagerie.studies.frame.grid import Grid
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.runs.results import Mean, mean_accuracy

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

LABELS = {
    "pairs": "animal pairs in training",
    "hard_negatives": "training pairs with hard negatives",
    "": "",
}
WIDEST = 10.0  # inches, as wide as a page: more panels go on in a further line
NAMES = 1.7  # inches for what stands beside the panels


def heat_maps(results: Sequence[dict[str, Any]], grid: Grid, tests: Sequence[tuple[str, str]]) -> Figure:
    """Accuracy (%): for each subset and task a panel per model; % of pairs up, % of hard negatives across.

    A place whose subset is empty shows a dash, one whose cell isn't finished other dots (`gap`).
    """
    up, across, rest = layout(grid)
    models, width = grid.models, 1.0 + 0.85 * len(across.values)
    columns = max(1, min(len(models), int((WIDEST - NAMES) / width)))
    lines = -(-len(models) // columns)  # of panels, for each test
    height = (0.8 if lines > 1 else 0.5) + 0.62 * len(up.values)
    shown = list(product(zip(tests, panel_names(grid, tests), strict=True), rest))
    figure = Figure((width * columns + NAMES, height * lines * len(shown) + 1.3), layout="constrained")
    axes = figure.subplots(lines * len(shown), columns, squeeze=False)
    blocks = axes.reshape(len(shown), -1)
    for block, (((subset, task), name), fixed) in zip(blocks, shown, strict=True):
        for axis in block[len(models) :]:
            axis.axis("off")
        for axis, model in zip(block, models, strict=False):
            cell = partial(mean_accuracy, results, model, subset, task=task)
            table = [[cell(place=fixed | up.at(y) | across.at(x)) for x in across.values] for y in up.values]
            image = draw_panel(axis, table)
            axis.set_xticks(range(len(across.values)), across.ticks)
            axis.set_yticks(range(len(up.values)), up.ticks)
            if axis.get_subplotspec().is_first_row() or lines > 1:
                axis.set_title(wrap(short(model), 24), fontsize=10, parse_math=False)
        for axis in block[: len(models) : columns]:
            facts = "".join(f"\n{key} {ticked(key, value)}" for key, value in fixed.items())
            axis.set_ylabel(name + facts, fontsize=9, parse_math=False, rotation=0, ha="right", va="center")
    figure.supylabel(up.label, fontsize=9)
    figure.supxlabel(across.label, x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)
    bar = bar_above(figure, image, axes, "accuracy (%), dotted line: chance", width=1.6)
    chance_line(bar.ax, "x", color="white", linewidth=2)
    return figure


class Side(NamedTuple):
    """The axis that varies along a side of a heat map, with its values."""

    name: str
    values: list[Any]

    @property
    def label(self) -> str:
        return LABELS.get(self.name, self.name.replace("_", " "))

    @property
    def ticks(self) -> list[str]:
        return [ticked(self.name, value) for value in self.values]

    def at(self, value: Any) -> dict[str, Any]:
        """The part of a place that a value is."""
        return {self.name: value} if self.name else {}


def ticked(name: str, value: Any) -> str:
    """A value of an axis, in words."""
    if name in FRACTIONS:
        return f"{value:.0%}"
    return "+".join(value) if isinstance(value, tuple) else str(value or "")


def layout(grid: Grid) -> tuple[Side, Side, list[dict[str, Any]]]:
    """Choose the axes that vary upwards and across a heat map, fractions first, and the values of the others, which
    get lines of panels of their own."""
    values = {name: list(dict.fromkeys(place[name] for place in grid.places)) for name in grid.places[0]}
    if "split" in values:  # files are at places of their own
        return Side("split", values["split"]), Side("", [None]), [{}]
    varied = [name for name, choices in values.items() if len(choices) > 1 and name not in FRACTIONS]
    sides = []
    for name in FRACTIONS:
        chosen = varied.pop(0) if len(values[name]) == 1 and varied else name
        sides.append(Side(chosen, sorted(values[chosen]) if chosen == "pairs" else values[chosen]))
    rest = [dict(zip(varied, choices, strict=True)) for choices in product(*(values[name] for name in varied))]
    return sides[0], sides[1], rest


def panel_names(grid: Grid, tests: Sequence[tuple[str, str]]) -> list[str]:
    """The name of each line of panels: its subset, its task, or both if both differ; the task "swap" isn't named."""
    subsets = [TITLES.get(subset) or wrap(grid.label(subset).replace("_", " "), 24) for subset, _ in tests]
    if len(set(subsets)) == 1 and len(tests) > 1:
        return [task for _, task in tests]
    return [s if task == "swap" else f"{s}\n{task}" for s, (_, task) in zip(subsets, tests, strict=True)]


def draw_panel(axis: Axes, table: list[list[Mean]]) -> AxesImage:
    """One heat map with its numbers: mean, and deviation where there are several seeds."""
    values = np.array([[np.nan if cell.mean is None else 100 * cell.mean for cell in row] for row in table])
    image = axis.imshow(values, **ACCURACY, origin="lower", aspect="auto")
    axis.set_facecolor("0.85")
    for y, row in enumerate(table):
        for x, cell in enumerate(row):
            text = gap(cell.seeds) if cell.mean is None else f"{100 * cell.mean:.1f}"
            if cell.deviation is not None:
                text += f"\n±{100 * cell.deviation:.1f}"
            colour = "black" if cell.mean is None else ink(colour_at(100 * cell.mean, ACCURACY))
            axis.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    return image


BAR_PANEL, BAR_NAMES = 2.2, 1.6  # inches of a panel of bars, and of what stands beside it


def bars(results: Sequence[dict[str, Any]], grid: Grid, tests: Sequence[tuple[str, str]]) -> Figure:
    """Accuracy (%) at the one place of the grid: for each subset and task a panel, in it a bar for each model.

    The best of all models is at the top, in the mean over the panels; where there is no number stands why. Of a test
    without scenes there is no panel.
    """
    (place,) = grid.places
    means = {
        (subset, task): {model: mean_accuracy(results, model, subset, place, task) for model in grid.models}
        for subset, task in tests
    }
    tests = [test for test in tests if any(mean.mean is not None for mean in means[test].values())] or tests
    order = ranked(results, grid.models, tests)
    lines = -(-len(tests) // int((WIDEST - BAR_NAMES) / BAR_PANEL))
    columns = -(-len(tests) // lines)  # four are two by two, not three and one
    figure = Figure((BAR_PANEL * columns + BAR_NAMES, lines * (0.24 * len(order) + 0.75) + 0.3), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for axis, test, name in zip(axes.flat, tests, panel_names(grid, tests), strict=False):
        axis.set_title(name, fontsize=9, parse_math=False)
        draw(axis, [means[test][model] for model in order], [liked(results, model, test, place) for model in order])
    for axis in axes.flat[len(tests) :]:
        axis.axis("off")
    axes[0, 0].set_yticks(range(len(order)), list(map(short, order)), parse_math=False)
    for axis in axes[:, 0]:
        axis.tick_params("y", labelsize=9)
    axes[0, 0].set(ylim=(len(order) - 0.4, -0.6), xlim=(0, 100))
    axes[-1, 0].set_xlabel("accuracy (%)\ndotted line: chance, 50", loc="left", fontsize=9)
    return figure


def ranked(results: Sequence[dict[str, Any]], models: Sequence[str], tests: Sequence[tuple[str, str]]) -> list[str]:
    """Models by their mean over all their cells and some subsets and tasks, the best first; equal ones as they came."""

    def level(model: str) -> float:
        scores = [
            result["subsets"].get(subset, {}).get(task)
            for result in results
            if result["model"] == model
            for subset, task in tests
        ]
        known = [score["accuracy"] for score in scores if score and score["accuracy"] is not None]
        return sum(known) / len(known) if known else -1.0

    return sorted(models, key=level, reverse=True)


def liked(results: Sequence[dict[str, Any]], model: str, test: tuple[str, str], place: dict[str, Any]) -> bool:
    """Whether a model's accuracy on swaps is of one caption that it likes whatever the image."""
    quads = mean_accuracy(results, model, test[0], place, QUAD).mean
    return test[1] == "swap" and quads is not None and bool(quads < NEAR)


def draw(axis: Axes, means: Sequence[Mean], pale: Sequence[bool]) -> None:
    """A bar for each model, some of them pale; to the right of all bars, where no line runs, its number and, of several
    seeds, the deviation, which is drawn too."""
    for y, (mean, faint) in enumerate(zip(means, pale, strict=True)):
        text = gap(mean.seeds) if mean.mean is None else f"{100 * mean.mean:.1f}"
        text += f" ±{100 * mean.deviation:.1f}" if mean.deviation is not None else ""
        axis.text(103, y, text, va="center", fontsize=8)
        if mean.mean is not None:
            axis.barh(y, 100 * mean.mean, height=0.72, color=COLOURS[0], alpha=0.35 if faint else 1)
        if mean.deviation is not None:
            axis.errorbar(100 * mean.mean, y, xerr=100 * mean.deviation, color="0.2", linewidth=1, capsize=2)
    chance_line(axis, "x")
    axis.tick_params(labelsize=8, length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
