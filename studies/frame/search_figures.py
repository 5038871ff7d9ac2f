"""Figures of searches for few images: fronts, accuracy between settings, and how the searches got on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib
import numpy as np

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
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.frame.sampling import surrogate

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
IMAGES = "distinct training images"
Panels = list[tuple[Axes, Sequence[str]]]


class Tried(NamedTuple):
    """A setting with its accuracies, from 0 to 1."""

    images: int
    validation: float
    test: float = 0.0


@dataclass(frozen=True)
class Fronts(OwnFigure):
    """Accuracy by distinct images: rings for what was tried, on validation, points for the fronts, on the test."""

    tried: Mapping[str, Sequence[Tried]]
    fronts: Mapping[str, Sequence[Tried]]
    target: float
    judged_by: str

    def numbers(self) -> list[dict[str, Any]]:
        """A row for each setting on a front."""
        return [{"model": model, **its._asdict()} for model, front in self.fronts.items() for its in front]

    def figure(self) -> Figure:
        models = list(self.fronts)
        figure = Figure(panels_size(models, (9.4, 4.2), (2.4, 2.1)), layout="constrained")
        panels = model_panels(figure, models)
        for axis, strong in panels:
            for k, (model, front) in enumerate(self.fronts.items()):
                if model in strong:
                    draw_front(axis, self.tried[model], front, line_style(k))
                else:
                    axis.plot([its.images for its in front], [100 * its.test for its in front], **PALE)
            axis.axhline(100 * self.target, color="0.6", linewidth=1, linestyle="--")
            chance_line(axis)
        for axis, _ in panels:
            count_axis(axis, "x")
        figure.supxlabel(IMAGES, fontsize=10)
        figure.supylabel(f"accuracy (%), {self.judged_by} over seeds", fontsize=10)
        names = [Line2D([], [], **line_style(k), label=short(model)) for k, model in enumerate(models)]
        legend_above(figure, [*(names if len(panels) == 1 else []), *front_keys(self.target)])
        return figure


def draw_front(axis: Axes, tried: Sequence[Tried], front: Sequence[Tried], style: dict[str, str]) -> None:
    """One model's Pareto front on validation, a line, on the test, where it needn't rise, and all that was tried."""
    axis.plot(
        *([its.images for its in tried], [100 * its.validation for its in tried]),
        **style | {"linestyle": "none"},
        **RING,
    )
    images = [its.images for its in front]
    axis.step(images, [100 * its.validation for its in front], where="post", color=style["color"], linewidth=1)
    axis.plot(images, [100 * its.test for its in front], **style | {"linestyle": "none"}, markersize=5)


def front_keys(target: float) -> list[Line2D]:
    """Legend entries that explain lines and points, whatever their colour."""
    grey = {"color": "0.4", "linewidth": 1}
    return [
        Line2D([], [], **grey | {"linestyle": "none"}, marker="o", **RING, label="a setting, on validation"),
        Line2D([], [], **grey, label="a model's front of these"),
        Line2D([], [], color="0.4", marker="o", markersize=5, linestyle="none", label="settings of it, on the test"),
        Line2D([], [], **grey, linestyle="--", label=f"target, {target:.0%}"),
        Line2D([], [], **CHANCE, label="chance"),
    ]


@dataclass(frozen=True)
class Maps(OwnFigure):
    """Interpolated validation accuracy over pairs and hard negatives, a panel per model; circles were tried."""

    places: Mapping[str, Sequence[tuple[float, float, float]]]
    """Of each setting its share of hard negatives, of pairs, and its accuracy."""

    def figure(self) -> Figure:
        columns = min(PANELS, len(self.places))
        lines = -(-len(self.places) // columns)
        figure = Figure((2.7 * columns + 1.0, 3.0 * lines), layout="constrained")
        axes = figure.subplots(lines, columns, squeeze=False)
        for axis in axes.flat[len(self.places) :]:
            axis.axis("off")
        image = None
        for axis, (model, tried) in zip(axes.flat, self.places.items(), strict=False):
            axis.set_title(short(model), fontsize=10, parse_math=False)
            axis.set_xlabel("pairs with hard negatives (%)", fontsize=9)
            axis.set(xlim=(-3, 103), ylim=(-3, 103), facecolor="0.9")
            if tried:
                table = np.array(tried, np.float64)
                image = interpolated(axis, table[:, :2], table[:, 2])
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
    mean, deviation = surrogate(places, values)(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2))
    near = np.where(deviation <= values.std() / 2, 100 * mean, np.nan).reshape(SIDE, SIDE)
    extent = (-1.25, 101.25, -1.25, 101.25)
    axis.imshow(near, origin="lower", extent=extent, aspect="auto", alpha=0.5, **ACCURACY)
    return axis.scatter(*(100 * places.T), c=100 * values, s=60, edgecolors="black", linewidths=1, zorder=3, **ACCURACY)


@dataclass(frozen=True)
class Searches(OwnFigure):
    """Over the number of trials the hypervolume of the front on validation, and the images of each trial for the
    target."""

    volumes: Mapping[str, Sequence[tuple[int, float]]]
    images: Mapping[str, Sequence[tuple[int, int, str]]]
    """Of each trial its number, images, and whether it "reached" the target, "missed" it, or was "pruned"."""

    def figure(self) -> Figure:
        models = list(self.volumes)
        width, height = panels_size(models, (9.2, 3.4), (2.4, 1.7))
        figure = Figure((width, 2 * height if len(models) > MOST_TOGETHER else height), layout="constrained")
        volumes, images = history_panels(figure, models)
        for axis, strong in volumes:
            for k, (model, course) in enumerate(self.volumes.items()):
                style = {**line_style(k), "markersize": 4} if model in strong else PALE
                axis.plot([number for number, _ in course], [volume for _, volume in course], **style)
            axis.set_ylim(0, None)
        for axis, strong in images:
            for k, (model, tried) in enumerate(self.images.items()):
                for each in tried if model in strong else ():
                    mark(axis, *each, line_style(k))
            count_axis(axis, "y")
        for axis, _ in (*volumes, *images):
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        grey = {"color": "0.4", "linestyle": "none", "marker": "o"}
        keys = [
            Line2D([], [], **grey, label="reaches the target"),
            Line2D([], [], **grey, mfc="none", label="does not"),
        ]
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


def mark(axis: Axes, number: int, images: int, how: str, style: dict[str, str]) -> None:
    """The images of a trial, filled where they reach the target; a cross for one pruned before that is known."""
    if how == "pruned":
        axis.scatter(number, images, 28, marker="x", color=style["color"])
        return
    face = style["color"] if how == "reached" else "none"
    axis.scatter(number, images, 28, marker=style["marker"], facecolor=face, edgecolor=style["color"])
