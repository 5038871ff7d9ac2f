"""Figures of how the searches of sample efficiency got on, and of what they tried."""

from collections.abc import Sequence
from functools import partial

import matplotlib
import numpy as np
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import (
    MOST_TOGETHER,
    PALE,
    count_axis,
    legend_above,
    line_style,
    model_panels,
    panels_size,
    short,
)
from menagerie.studies.analysis import pareto
from menagerie.studies.analysis.trial_figures import parallel_figures
from menagerie.studies.sample_search.budget import SampleStudy
from menagerie.studies.sample_search.tables import Point, axis_of
from menagerie.studies.sample_search.trial_table import state_of

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

IMAGES = "distinct training images"
Panels = list[tuple[Axes, Sequence[str]]]


def history_figure(config: SampleStudy, all_points: Sequence[Point]) -> Figure:
    """By number of trials: hypervolume of the Pareto front (validation), and images of each trial for the target."""
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


def draw_volumes(panels: Panels, config: SampleStudy, all_points: Sequence[Point]) -> None:
    """The hypervolume of what the first search had tried by each of its trials."""
    for k, model in enumerate(config.models):
        whole = [p for p in all_points if (p.model, p.question) == (model, "front") and p.whole]
        numbers, course = [p.trial.number for p in whole], volumes_so_far(config, whole)
        for axis, strong in panels:
            axis.plot(numbers, course, **({**line_style(k), "markersize": 4} if model in strong else PALE))
    for axis, _ in panels:
        axis.set_ylim(0, None)


def draw_images(panels: Panels, config: SampleStudy, all_points: Sequence[Point]) -> None:
    """The images of each trial of the second search."""
    tried = [p for p in all_points if p.question == "target" and "images" in p.trial.user_attrs]
    for axis, strong in panels:
        for k, model in enumerate(config.models):
            if model in strong:
                scatter_reached(axis, [p for p in tried if p.model == model], config, line_style(k))
    for axis, _ in panels:
        count_axis(axis, "y")


def volumes_so_far(config: SampleStudy, points: Sequence[Point]) -> list[float]:
    """Hypervolume on validation of the first, the first two, ... settings."""
    images, accuracy = np.array([p.images for p in points], float), np.array([p.accuracy for p in points])
    counts = range(1, len(points) + 1)
    return [float(pareto.hypervolume(images[:n], accuracy[:n], axis_of(config))) for n in counts]


def scatter_reached(axis: Axes, points: Sequence[Point], config: SampleStudy, style: dict[str, str]) -> None:
    """The images of trials, filled where they reach the target; a cross for one pruned before that is known."""
    for p in points:
        if state_of(config, p.trial) == "pruned":
            axis.scatter(p.trial.number, p.images, 28, marker="x", color=style["color"])
            continue
        face = style["color"] if p.whole and p.accuracy >= config.target else "none"
        axis.scatter(p.trial.number, p.images, 28, marker=style["marker"], facecolor=face, edgecolor=style["color"])


def settings_figures(config: SampleStudy, all_points: Sequence[Point]) -> dict[str, Figure]:
    """For each model the settings of both searches, as parallel coordinates."""
    tried = {model: [p.trial for p in all_points if p.model == model] for model in config.models}
    return parallel_figures(
        tried, partial(percent, config), "validation accuracy (%)", ("pairs", "hard_negatives", "singles_share")
    )


def percent(config: SampleStudy, trial: FrozenTrial) -> float | None:
    """Accuracy of a trial on validation in percent; None for one that failed, or was pruned before all seeds ended."""
    known = "accuracy" in trial.user_attrs and state_of(config, trial) != "pruned"
    return 100 * trial.user_attrs["accuracy"] if known else None
