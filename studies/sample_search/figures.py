"""Figures of sample efficiency: Pareto fronts, accuracy between settings, and how the searches got on."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import (
    ACCURACY,
    CHANCE,
    MOST_TOGETHER,
    PALE,
    bar_above,
    chance_line,
    count_axis,
    legend_above,
    line_style,
    model_panels,
    panels_size,
    short,
)
from menagerie.studies.analysis import pareto
from menagerie.studies.frame.trial_figures import parallels
from menagerie.studies.sample_search.budget import Config
from menagerie.studies.sample_search.samplers import surrogate
from menagerie.studies.sample_search.tables import Point, axis_of, state_of

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

# Points along each side of an interpolated map.
SIDE = 41
PANELS = 3  # maps beside one another
# Of a setting that was tried: wider than a point, so that none hides it.
RING: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.1}


def pareto_figure(config: Config, all_points: Sequence[Point], chosen: Mapping[str, Sequence[Point]]) -> Figure:
    """Accuracy (%) by distinct images (log): rings for what was tried (validation), points for the fronts (test)."""
    figure = Figure(panels_size(list(chosen), (9.4, 4.2), (2.4, 2.1)), layout="constrained")
    panels = model_panels(figure, list(chosen))
    for axis, strong in panels:
        for k, (model, front) in enumerate(chosen.items()):
            if model in strong:
                tried = [p for p in all_points if (p.model, p.question) == (model, "front") and p.whole]
                draw_front(axis, tried, front, line_style(k))
            else:
                axis.plot([p.images for p in front], [100 * p.test for p in front], **PALE)
        axis.axhline(100 * config.target, color="0.6", linewidth=1, linestyle="--")
        chance_line(axis)
    for axis, _ in panels:
        count_axis(axis, "x")
    figure.supxlabel("distinct training images", fontsize=10)
    figure.supylabel(f"accuracy (%), {'mean' if config.budgets else 'median'} over seeds", fontsize=10)
    if len(panels) > 1:
        legend_above(figure, front_keys(config, "settings of its front, on the test"))
    else:
        names = [Line2D([], [], **line_style(k), label=short(model)) for k, model in enumerate(chosen)]
        legend_above(figure, [*names, *front_keys(config, "settings of a front, on the test")])
    return figure


def draw_front(axis: Axes, tried: Sequence[Point], front: Sequence[Point], style: dict[str, str]) -> None:
    """One model's Pareto front on validation, a line, on the test, where it needn't rise, and all that was tried."""
    accuracies = [100 * p.accuracy for p in tried]
    axis.plot([p.images for p in tried], accuracies, **style | {"linestyle": "none"}, **RING)
    images = [p.images for p in front]
    thin = {"color": style["color"], "linewidth": 1}
    axis.step(images, [100 * p.accuracy for p in front], where="post", **thin)
    axis.plot(images, [100 * p.test for p in front], **style, linestyle="none", markersize=5)


def front_keys(config: Config, front: str) -> list[Line2D]:
    """Legend entries that explain lines and points, whatever their colour."""
    grey = {"color": "0.4", "linewidth": 1}
    return [
        Line2D([], [], **grey | {"linestyle": "none"}, marker="o", **RING, label="a setting, on validation"),
        Line2D([], [], **grey, label="a model's front of these"),
        Line2D([], [], color="0.4", marker="o", markersize=5, linestyle="none", label=front),
        Line2D([], [], **grey, linestyle="--", label=f"target, {config.target:.0%}"),
        Line2D([], [], **CHANCE, label="chance"),
    ]


def map_figure(config: Config, all_points: Sequence[Point]) -> Figure:
    """Interpolated validation accuracy (%) over pairs and hard negatives, a panel per model; points were tried."""
    columns = min(PANELS, len(config.models))
    lines = -(-len(config.models) // columns)
    figure = Figure((2.7 * columns + 1.0, 3.0 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for axis in axes.flat[len(config.models) :]:
        axis.axis("off")
    image = None
    for axis, model in zip(axes.flat, config.models, strict=False):
        tried = [p for p in all_points if p.model == model and p.whole]
        axis.set_title(short(model), fontsize=10, parse_math=False)
        axis.set_xlabel("pairs with hard negatives (%)", fontsize=9)
        axis.set(xlim=(-3, 103), ylim=(-3, 103), facecolor="0.9")
        if tried:
            places = np.array(
                [[p.trial.user_attrs["setting"][name] for name in ("hard_negatives", "pairs")] for p in tried]
            )
            values = np.array([p.accuracy for p in tried])
            image = interpolated(axis, places, values)
    for axis in axes[:, 0]:
        axis.set_ylabel("animal pairs in training (%)", fontsize=9)
    if image is not None:
        bar = bar_above(figure, image, axes, "validation (%), dotted line: chance")
        chance_line(bar.ax, "x", color="white", linewidth=2)
    return figure


def interpolated(axis: Axes, places: np.ndarray, values: np.ndarray) -> Any:
    """The points that were tried, and a map near them; what else was varied is averaged over.

    A place is near points if they take more than half of the deviation that a guess would have without them."""
    line = np.linspace(0, 1, SIDE)
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    mean, deviation = surrogate(places, values)(grid)
    near = np.where(deviation <= values.std() / 2, 100 * mean, np.nan).reshape(SIDE, SIDE)
    extent = (-1.25, 101.25, -1.25, 101.25)
    axis.imshow(near, origin="lower", extent=extent, aspect="auto", alpha=0.5, **ACCURACY)
    return axis.scatter(*(100 * places.T), c=100 * values, s=60, edgecolors="black", linewidths=1, zorder=3, **ACCURACY)


IMAGES = "distinct training images"
Panels = list[tuple[Axes, Sequence[str]]]


def history_figure(config: Config, all_points: Sequence[Point]) -> Figure:
    """Draw, over the number of trials, the hypervolume of the Pareto front (validation), and the images of each
    trial for the target."""
    models = config.models
    width, height = panels_size(models, (9.2, 3.4), (2.4, 1.7))
    figure = Figure((width, 2 * height if len(models) > MOST_TOGETHER else height), layout="constrained")
    volumes, images = history_panels(figure, models)
    draw_volumes(volumes, config, all_points)
    draw_images(images, config, all_points)
    for axis, _ in (*volumes, *images):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    grey = {"color": "0.4", "linestyle": "none", "marker": "o"}
    keys = [Line2D([], [], **grey, label="reaches the target"), Line2D([], [], **grey, mfc="none", label="does not")]
    keys.append(Line2D([], [], **grey | {"marker": "x"}, label="pruned"))
    colours = [Line2D([], [], **line_style(k), label=short(model)) for k, model in enumerate(models)]
    legend_above(figure, keys if len(models) > MOST_TOGETHER else [*colours, *keys])
    return figure


def history_panels(figure: Figure, models: Sequence[str]) -> tuple[Panels, Panels]:
    """The panels of both searches beside one another; of many models below one another, with one for each model."""
    names = ("trial of the first search", "hypervolume on validation"), ("trial of the second search", IMAGES)
    if len(models) <= MOST_TOGETHER:
        axes = figure.subplots(1, 2)
        for axis, (below, beside) in zip(axes, names, strict=True):
            axis.set(xlabel=below, ylabel=beside)
        return [(axes[0], models)], [(axes[1], models)]
    parts = figure.subfigures(2, 1)
    for part, (below, beside) in zip(parts, names, strict=True):
        part.supxlabel(below, fontsize=10)
        part.supylabel(beside, fontsize=10)
    return model_panels(parts[0], models), model_panels(parts[1], models)


def draw_volumes(panels: Panels, config: Config, all_points: Sequence[Point]) -> None:
    """The hypervolume of what the first search had tried by each of its trials."""
    for k, model in enumerate(config.models):
        whole = [p for p in all_points if (p.model, p.question) == (model, "front") and p.whole]
        numbers, course = [p.trial.number for p in whole], volumes_so_far(config, whole)
        for axis, strong in panels:
            axis.plot(numbers, course, **({**line_style(k), "markersize": 4} if model in strong else PALE))
    for axis, _ in panels:
        axis.set_ylim(0, None)


def draw_images(panels: Panels, config: Config, all_points: Sequence[Point]) -> None:
    """The images of each trial of the second search."""
    tried = [p for p in all_points if p.question == "target" and "images" in p.trial.user_attrs]
    for axis, strong in panels:
        for k, model in enumerate(config.models):
            if model in strong:
                scatter_reached(axis, [p for p in tried if p.model == model], config, line_style(k))
    for axis, _ in panels:
        count_axis(axis, "y")


def volumes_so_far(config: Config, points: Sequence[Point]) -> list[float]:
    """Hypervolume on validation of the first, the first two, ... settings."""
    images, accuracy = np.array([p.images for p in points], float), np.array([p.accuracy for p in points])
    counts = range(1, len(points) + 1)
    return [float(pareto.hypervolume(images[:n], accuracy[:n], axis_of(config))) for n in counts]


def scatter_reached(axis: Axes, points: Sequence[Point], config: Config, style: dict[str, str]) -> None:
    """The images of trials, filled where they reach the target; a cross for one pruned before that is known."""
    for p in points:
        if state_of(config, p.trial) == "pruned":
            axis.scatter(p.trial.number, p.images, 28, marker="x", color=style["color"])
            continue
        face = style["color"] if p.whole and p.accuracy >= config.target else "none"
        axis.scatter(p.trial.number, p.images, 28, marker=style["marker"], facecolor=face, edgecolor=style["color"])


def settings_figures(config: Config, all_points: Sequence[Point]) -> dict[str, Figure]:
    """For each model the settings of both searches, as parallel coordinates."""
    tried = {model: [p.trial for p in all_points if p.model == model] for model in config.models}
    shown = parallels(tried, {}, partial(percent, config), ("pairs", "hard_negatives", "singles_share"))
    return {model: part.figure() for model, part in zip(tried, shown, strict=True)}


def percent(config: Config, trial: FrozenTrial) -> float | None:
    """Accuracy of a trial on validation in percent; None for one that failed, or was pruned before all seeds ended."""
    known = "accuracy" in trial.user_attrs and state_of(config, trial) != "pruned"
    return 100 * trial.user_attrs["accuracy"] if known else None
