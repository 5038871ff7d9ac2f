"""Accuracies of a grid of one place as bars: a heat map of a single cell would show a number and nothing else."""

from collections.abc import Sequence
from typing import Any

import matplotlib

from menagerie.envs.core.figure_style import COLOURS, chance_line, short
from menagerie.studies.analysis.tables import NEAR, QUAD, gap
from menagerie.studies.grids.figures import WIDEST, panel_names
from menagerie.studies.grids.grid import Grid
from menagerie.studies.runs.results import Mean, mean_accuracy

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PANEL, NAMES = 2.2, 1.6  # inches


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
    tests = [test for test in tests if any(its.mean is not None for its in means[test].values())] or tests
    order = ranked(results, grid.models, tests)
    lines = -(-len(tests) // int((WIDEST - NAMES) / PANEL))
    columns = -(-len(tests) // lines)  # four are two by two, not three and one
    figure = Figure((PANEL * columns + NAMES, lines * (0.24 * len(order) + 0.75) + 0.3), layout="constrained")
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
            its["subsets"].get(subset, {}).get(task)
            for its in results
            if its["model"] == model
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
    for y, (its, faint) in enumerate(zip(means, pale, strict=True)):
        text = gap(its.seeds) if its.mean is None else f"{100 * its.mean:.1f}"
        text += f" ±{100 * its.deviation:.1f}" if its.deviation is not None else ""
        axis.text(103, y, text, va="center", fontsize=8)
        if its.mean is not None:
            axis.barh(y, 100 * its.mean, height=0.72, color=COLOURS[0], alpha=0.35 if faint else 1)
        if its.deviation is not None:
            axis.errorbar(100 * its.mean, y, xerr=100 * its.deviation, color="0.2", linewidth=1, capsize=2)
    chance_line(axis, "x")
    axis.tick_params(labelsize=8, length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
