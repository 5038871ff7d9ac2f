"""Figures of a search's trials: which parameters gave which value, and how the search got on."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import (
    CHANCE,
    PALE,
    bar_above,
    chance_line,
    legend_above,
    line_style,
    model_panels,
    panels_size,
    short,
)
from menagerie.studies.frame.parts import OwnFigure

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

Value = Callable[[FrozenTrial], float | None]
WIDEST = 9.8  # inches, as wide as a page
RING = 17  # points across
REPEATED = "its mean over seeds, where repeated"


def accuracy(trial: FrozenTrial) -> float | None:
    """The last of a trial's values, in percent; None of one without values."""
    return 100 * trial.values[-1] if trial.values else None


def parallels(
    trials: Mapping[str, Sequence[FrozenTrial]],
    winners: Mapping[str, int],
    value: Value = accuracy,
    shares: Collection[str] = (),
) -> "list[Parallel]":
    """A figure of each model's trials, in which one colour means one value for all models."""
    values = [number for tried in trials.values() for trial in tried if (number := value(trial)) is not None]
    scale = (min(values, default=0.0), max(values, default=1.0))
    return [
        Parallel(
            *(f"parallel-{k}", tried, scale, value),
            shares=shares,
            chosen=winners.get(model),
            says=f"The trials of `{model}`.",
        )
        for k, (model, tried) in enumerate(trials.items(), start=1)
    ]


@dataclass(frozen=True)
class Parallel(OwnFigure):
    """Parallel coordinates: a line for each trial over the values of its parameters, coloured by what it reached.

    Trials without a value are grey and dashed, the one of number `chosen` has dots. A parameter of one value is left
    out; of parameters in `shares` the values are written in percent.
    """

    trials: Sequence[FrozenTrial]
    scale: tuple[float, float]
    value: Value = accuracy
    shares: Collection[str] = field(default=(), kw_only=True)
    chosen: int | None = field(default=None, kw_only=True)

    def numbers(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        return [{"trial": trial.number, "accuracy (%)": self.value(trial), **trial.params} for trial in self.trials]

    def figure(self) -> Figure:
        whole = max((trial.distributions for trial in self.trials), key=len, default={})
        drawn = [trial for trial in self.trials if whole and trial.params.keys() == whole.keys()]
        space = {name: parameter for name, parameter in whole.items() if not parameter.single()} or whole
        figure = Figure((min(1.4 * len(space) + 0.6, WIDEST), 4.0), layout="constrained")
        axis = figure.subplots()
        colours = ScalarMappable(Normalize(*self.scale), "viridis")
        for trial in sorted(drawn, key=lambda trial: self.value(trial) or 0.0):  # the best lie on top
            number = self.value(trial)
            style = {"color": "0.6", "linestyle": "--"} if number is None else {"color": colours.to_rgba(number)}
            style |= {"marker": "o", "zorder": 3} if trial.number == self.chosen else {}
            axis.plot([height(parameter, trial.params[name]) for name, parameter in space.items()], lw=1.6, **style)
        for place, (name, parameter) in enumerate(space.items()):
            scale_at(axis, place, parameter, name in self.shares)
        axis.set_xticks(range(len(space)), [name.replace("_", "\n") for name in space], fontsize=9, parse_math=False)
        axis.set(xlim=(-0.1, len(space) - 0.6), ylim=(-0.05, 1.05), yticks=[])
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        if any(self.value(trial) is not None for trial in drawn):
            bar_above(figure, colours, axis, "validation accuracy (%)")
        return figure


def height(parameter: BaseDistribution, value: Any) -> float:
    """The height of a value on the axis of its parameter, from 0 for the least to 1 for the largest; choices are
    evenly spaced."""
    if isinstance(parameter, CategoricalDistribution):
        return (parameter.choices.index(value) + 0.5) / len(parameter.choices)
    low, high, here = (np.log(x) if parameter.log else x for x in (parameter.low, parameter.high, value))
    return float((here - low) / (high - low)) if high > low else 0.5


def scale_at(axis: Axes, place: int, parameter: BaseDistribution, share: bool) -> None:
    """The line of a parameter, with its choices, or with its least, middle and most value."""
    axis.axvline(place, color="0.4", linewidth=1)
    for value in marks(parameter):
        text = f"{value:.0%}" if share else f"{value:.2g}" if isinstance(value, float) else str(value)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
        axis.text(place + 0.04, height(parameter, value), text, fontsize=8, va="center", bbox=box, parse_math=False)


def marks(parameter: BaseDistribution) -> list[Any]:
    """The values that a parameter's line names."""
    if isinstance(parameter, CategoricalDistribution):
        return list(parameter.choices)
    low, high = parameter.low, parameter.high
    middle = float(np.sqrt(low * high)) if parameter.log else (low + high) / 2
    return list(dict.fromkeys([low, round(middle) if isinstance(low, int) else middle, high]))


@dataclass(frozen=True)
class Course(OwnFigure):
    """Validation accuracy of every trial with its one seed, and the best so far; of trials that were repeated the mean
    over seeds, with a ring round the one that was chosen, a number in `winners`."""

    rows: Sequence[Mapping[str, Any]]
    """Of each trial its model, number, "validation" and "repeated", from 0 to 1 or None."""
    winners: Mapping[str, int]

    def numbers(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        return [{name: row[name] for name in ("model", "trial", "validation", "repeated")} for row in self.rows]

    def figure(self) -> Figure:
        models = list(dict.fromkeys(row["model"] for row in self.rows))
        figure = Figure(panels_size(models, (8.8, 3.6), (2.4, 1.9)), layout="constrained")
        panels = model_panels(figure, models)
        for axis, strong in panels:
            for number, model in enumerate(models):
                mine = [row for row in self.rows if row["model"] == model]
                draw_course(axis, mine, self.winners.get(model), line_style(number) if model in strong else None)
            chance_line(axis)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.supxlabel("trial", fontsize=10)
        figure.supylabel("validation accuracy (%)", fontsize=10)
        names = [Line2D([], [], **line_style(k), label=short(model)) for k, model in enumerate(models)]
        legend_above(figure, [*(names if len(panels) == 1 else []), *course_keys()])
        return figure


def course_keys() -> list[Line2D]:
    """Legend entries that explain lines and points, whatever their colour."""
    grey, lone = {"color": "0.4"}, {"marker": "o", "linestyle": "none"}
    ring = {"markersize": RING, "markerfacecolor": "none", "markeredgecolor": "0.4"}
    return [
        Line2D([], [], **grey, **lone, alpha=0.35, label="a trial, its one seed"),
        Line2D([], [], **grey, label="the best of these so far"),
        Line2D([], [], **grey, marker="_", markersize=13, markeredgewidth=2.5, linestyle="none", label=REPEATED),
        Line2D([], [], **lone, **ring, label="chosen: the best mean"),
        Line2D([], [], **CHANCE, label="chance"),
    ]


def draw_course(
    axis: Axes, rows: Sequence[Mapping[str, Any]], winner: int | None, style: dict[str, str] | None
) -> None:
    """One model's trials; without a style only their best so far, pale."""
    trials, values = [row["trial"] for row in rows], 100 * np.array([row["validation"] or 0.0 for row in rows])
    best = np.maximum.accumulate(values)
    if style is None:
        axis.step(trials, best, where="post", **PALE)
        return
    axis.step(trials, best, where="post", color=style["color"])
    axis.plot(trials, values, linestyle="none", markersize=5, alpha=0.35, **style)
    for row, one_seed in zip(rows, values, strict=True):
        if row["repeated"] is None:
            continue
        trial, mean = row["trial"], 100 * row["repeated"]
        axis.plot([trial, trial], [one_seed, mean], color=style["color"], linewidth=0.8)
        axis.plot(trial, mean, "_", color=style["color"], markersize=13, markeredgewidth=2.5)
        if trial == winner:
            ring = {"markersize": RING, "markerfacecolor": "none", "markeredgecolor": style["color"]}
            axis.plot(trial, mean, "o", **ring)
