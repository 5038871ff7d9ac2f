"""Figures of the trials of searches: points by trial or cost, parallel coordinates, and a map that interpolates between
the settings that were tried."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from menagerie.studies.frame.figures import DASHED, WIDEST, panel_axes
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.frame.sampling import share_to_value, surrogate, value_to_share
from menagerie.studies.report.figures import (
    ACCURACY,
    CHANCE,
    MOST_TOGETHER,
    PALE,
    bar_above,
    chance_line,
    count_axis,
    legend_above,
    line_style,
    model_label,
    model_panels,
    panels_size,
)

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

LONE = {"linestyle": "none", "markersize": 5.0}
# Styles of series, besides the colour and the marker of their model. Rings are wider than points, so that both are
# visible.
POINTS: dict[str, Any] = LONE
FAINT: dict[str, Any] = LONE | {"alpha": 0.35}
HOLLOW: dict[str, Any] = LONE | {"markerfacecolor": "none"}
CROSSES: dict[str, Any] = LONE | {"marker": "x"}
RINGS: dict[str, Any] = HOLLOW | {"markersize": 9, "markeredgewidth": 1.1}
CHOSEN: dict[str, Any] = HOLLOW | {"markersize": 17, "marker": "o"}
# For three points: the second, joined to the first.
DASHES: dict[str, Any] = {
    "marker": "_",
    "markersize": 13,
    "markeredgewidth": 2.5,
    "linewidth": 0.8,
    "markevery": (1, 3),
}
COURSE: dict[str, Any] = {"markersize": 4}
STEPS: dict[str, Any] = {"marker": "", "drawstyle": "steps-post", "linewidth": 1}

Points = Sequence[tuple[str, float | int, float | int]]
"""Points of a figure: the name of the model, x and y."""
Value = Callable[[FrozenTrial], float | None]


@dataclass(frozen=True)
class Side:
    """A plot of all models: its two axes, and its series of points."""

    x: str
    y: str
    series: Mapping[str, tuple[Mapping[str, Any], Points]]
    """For each series, by its text in the legend (empty for none): its style and its points."""
    pale: str | None = None
    """The series whose points of other models are drawn too, pale, in a panel of a single model."""
    counts: str = ""
    """The axis that shows counts, "x" or "y", which is logarithmic; empty if none does."""
    accuracies: bool = False
    """Whether `y` is an accuracy in percent."""
    level: float | None = None
    """A dashed line is drawn at this share."""

    def draw(self, figure: Any, axes: Any, models: Sequence[str]) -> None:
        """Draw all models on `axes`. Without `axes`, draw few models in one panel of `figure`, or each of many in a
        panel of its own, with the series `pale` of the others."""
        panels = [(axes, models)] if axes else model_panels(figure, models)
        if axes:
            axes.set(xlabel=self.x, ylabel=self.y)
        else:
            figure.supxlabel(self.x, fontsize=10)
            figure.supylabel(self.y, fontsize=10)
        for axis, strong in panels:
            for words, (look, points) in self.series.items():
                for number, model in enumerate(models):
                    if model in strong or words == self.pale:
                        style = line_style(number) | look if model in strong else look | PALE
                        axis.plot(*np.array([its[1:] for its in points if its[0] == model]).reshape(-1, 2).T, **style)
            if self.level is not None:
                axis.axhline(100 * self.level, **DASHED)
            if self.accuracies:
                chance_line(axis)
        for axis, _ in panels:  # once all is drawn: they share limits
            if self.counts:
                count_axis(axis, self.counts)
            if self.counts != "x":
                axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            if not (self.counts or self.accuracies):
                axis.set_ylim(min(0, axis.dataLim.ymin), None)

    def legend(self) -> list[Line2D]:
        """Make the legend's entries of series and lines, in grey: colours stand for models."""
        grey = {"color": "0.4", "marker": "o"}
        found = [Line2D([], [], label=words, **grey | look) for words, (look, _) in self.series.items() if words]
        if self.level is not None:
            found.append(Line2D([], [], label=f"target, {self.level:.0%}", **DASHED))
        return [*found, Line2D([], [], label="chance", **CHANCE)] if self.accuracies else found


@dataclass(frozen=True)
class ByModel(OwnFigure):
    """One or two plots (`sides`) beside each other. With many models the plots stand below each other, with a panel for
    each model."""

    models: Sequence[str]
    sides: Sequence[Side]
    rows: Sequence[Mapping[str, Any]] = ()
    """The numbers that the figure shows."""

    def numbers(self) -> Sequence[Mapping[str, Any]]:
        return self.rows

    def figure(self) -> Figure:
        models, together = self.models, len(self.models) <= MOST_TOGETHER
        width, height = panels_size(models, (9.2, 3.8), (2.4, 1.9))
        figure = Figure((width, height if together else len(self.sides) * height), layout="constrained")
        places = figure.subplots(1, len(self.sides), squeeze=False)[0] if together else [None] * len(self.sides)
        parts = [figure] if together or len(self.sides) == 1 else figure.subfigures(len(self.sides), 1)
        for number, (side, axes) in enumerate(zip(self.sides, places, strict=True)):
            side.draw(parts[number % len(parts)], axes, models)
        names = [Line2D([], [], **line_style(k), label=model_label(model)) for k, model in enumerate(models)]
        legend_above(figure, [*(names if together else []), *(key for side in self.sides for key in side.legend())])
        return figure


VALIDATION = "validation accuracy (%)"


def trial_value(trial: FrozenTrial) -> float | None:
    return trial.values[-1] if trial.values else None


def trial_percent(trial: FrozenTrial) -> float | None:
    """Return the last of a trial's values, in percent; None if it has no values."""
    return 100 * trial.values[-1] if trial.values else None


def parallels(
    trials: Mapping[str, Sequence[FrozenTrial]],
    winners: Mapping[str, int],
    value: Value = trial_percent,
    shares: Collection[str] = (),
    label: str = VALIDATION,
) -> "list[Parallel]":
    """Make a figure of each model's trials, all with one scale of colours; `label` names the values."""
    values = [number for tried in trials.values() for trial in tried if (number := value(trial)) is not None]
    scale = (min(values, default=0.0), max(values, default=1.0))
    of = partial(Parallel, scale=scale, value=value, shares=shares, label=label)
    return [
        of(f"parallel-{k}", trials[model], chosen=winners.get(model), says=f"The trials of `{model}`.")
        for k, model in enumerate(trials, start=1)
    ]


@dataclass(frozen=True)
class Parallel(OwnFigure):
    """Parallel coordinates: a line for each trial over the values of its parameters, coloured by its value.

    Trials without a value are grey and dashed; trial number `chosen` has dots. Parameters with a single value are left
    out. Values of parameters in `shares` are written in percent.
    """

    trials: Sequence[FrozenTrial]
    scale: tuple[float, float]
    value: Value = trial_percent
    shares: Collection[str] = field(default=(), kw_only=True)
    chosen: int | None = field(default=None, kw_only=True)
    label: str = field(default=VALIDATION, kw_only=True)

    def numbers(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        return [{"trial": trial.number, self.label: self.value(trial), **trial.params} for trial in self.trials]

    def figure(self) -> Figure:
        whole = max((trial.distributions for trial in self.trials), key=len, default={})
        drawn = [trial for trial in self.trials if whole and trial.params.keys() == whole.keys()]
        space = {name: parameter for name, parameter in whole.items() if not parameter.single()} or whole
        figure = Figure((min(1.4 * len(space) + 0.6, WIDEST), 4.0), layout="constrained")
        axis = figure.subplots()
        colours = ScalarMappable(Normalize(*self.scale), "viridis")
        for trial in sorted(drawn, key=lambda trial: self.value(trial) or 0.0):  # the best are drawn last
            number = self.value(trial)
            style = {"color": "0.6", "linestyle": "--"} if number is None else {"color": colours.to_rgba(number)}
            style |= {"marker": "o", "zorder": 3} if trial.number == self.chosen else {}
            axis.plot(
                [value_to_share(parameter, trial.params[name]) for name, parameter in space.items()], lw=1.6, **style
            )
        for place, (name, parameter) in enumerate(space.items()):
            scale_at(axis, place, parameter, name in self.shares)
        axis.set_xticks(range(len(space)), [name.replace("_", "\n") for name in space], fontsize=9, parse_math=False)
        axis.set(xlim=(-0.1, len(space) - 0.6), ylim=(-0.05, 1.05), yticks=[])
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        if any(self.value(trial) is not None for trial in drawn):
            bar_above(figure, colours, axis, self.label)
        return figure


def scale_at(axis: Axes, place: int, parameter: BaseDistribution, share: bool) -> None:
    """Draw the axis of a parameter with its choices, or with its least, middle and greatest value."""
    axis.axvline(place, color="0.4", linewidth=1)
    for value in marks(parameter):
        text = f"{value:.0%}" if share else f"{value:.2g}" if isinstance(value, float) else str(value)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
        axis.text(
            place + 0.04, value_to_share(parameter, value), text, fontsize=8, va="center", bbox=box, parse_math=False
        )


def marks(parameter: BaseDistribution) -> list[Any]:
    """List the values that are written beside a parameter's axis."""
    if isinstance(parameter, CategoricalDistribution):
        return list(parameter.choices)
    return list(dict.fromkeys(share_to_value(parameter, share) for share in (0.0, 0.5, 1.0)))


@dataclass(frozen=True)
class Maps(OwnFigure):
    """Interpolated validation accuracy over the shares of pairs and of hard negatives, with a panel for each model.
    Circles mark the settings that were tried."""

    places: Mapping[str, Sequence[tuple[float, float, float]]]
    """By model, for each setting: its share of hard negatives, its share of pairs, and its accuracy."""

    def figure(self) -> Figure:
        figure, axes = panel_axes(len(self.places), (2.9, 3.0))
        image = None
        for axis, (model, tried) in zip(axes, self.places.items(), strict=True):
            axis.set_title(model_label(model), fontsize=10, parse_math=False)
            axis.set(xlim=(-3, 103), ylim=(-3, 103), facecolor="0.9")
            if tried:
                table = np.array(tried, np.float64)
                image = draw_prediction_map(axis, table[:, :2], table[:, 2])
        figure.supxlabel("pairs with hard negatives (%)", fontsize=9)
        figure.supylabel("animal pairs in training (%)", fontsize=9)
        if image is not None:
            bar = bar_above(figure, image, axes, "validation (%), dotted line: chance")
            chance_line(bar.ax, "x", color="white", linewidth=2)
        return figure


def draw_prediction_map(axis: Axes, places: np.ndarray, values: np.ndarray) -> Any:
    """Draw the points that were tried, and a map of predicted values near them, averaged over the other parameters.

    A place is near points if the standard deviation of its prediction is at most half that of all values."""
    line = np.linspace(0, 1, 41)
    mean, deviation = surrogate(places, values)(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2))
    near = np.where(deviation <= values.std() / 2, 100 * mean, np.nan).reshape(len(line), -1)
    extent = (-1.25, 101.25, -1.25, 101.25)
    axis.imshow(near, origin="lower", extent=extent, aspect="auto", alpha=0.5, **ACCURACY)
    return axis.scatter(*(100 * places.T), c=100 * values, s=60, edgecolors="black", linewidths=1, zorder=3, **ACCURACY)
