"""Figures of a search's trials: parameters and the values reached."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import bar_above

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

Value = Callable[[FrozenTrial], float | None]
WIDEST = 9.8  # inches, as wide as a page


def parallel_figures(
    trials: Mapping[str, Sequence[FrozenTrial]],
    value: Value,
    label: str,
    shares: Collection[str] = (),
    chosen: Mapping[str, int] | None = None,
) -> dict[str, Figure]:
    """A figure of each model's trials, with one colour scale for all models; parameters in `shares` are written in
    percent, and the trial whose number is in `chosen` has dots."""
    values = [number for tried in trials.values() for trial in tried if (number := value(trial)) is not None]
    scale = Normalize(min(values, default=0), max(values, default=1))
    marked = chosen or {}
    return {
        model: parallel_figure(tried, value, label, scale, shares, marked.get(model)) for model, tried in trials.items()
    }


def parallel_figure(
    trials: Sequence[FrozenTrial],
    value: Value,
    label: str,
    scale: Normalize,
    shares: Collection[str] = (),
    chosen: int | None = None,
) -> Figure:
    """Parallel coordinates: each trial is a line over the values of its parameters, coloured by the value that it
    reached.

    Trials without a value are grey and dashed; the trial with the number `chosen` has dots. Parameters with a single
    value are left out.
    """
    whole = max((trial.distributions for trial in trials), key=len, default={})
    drawn = [trial for trial in trials if whole and trial.params.keys() == whole.keys()]
    space = {name: parameter for name, parameter in whole.items() if not parameter.single()} or whole
    figure = Figure((min(1.4 * len(space) + 0.6, WIDEST), 4.0), layout="constrained")
    axis = figure.subplots()
    colours = ScalarMappable(scale, "viridis")
    for trial in sorted(drawn, key=lambda trial: value(trial) or 0.0):  # draw the best last, on top
        number = value(trial)
        style = {"color": "0.6", "linestyle": "--"} if number is None else {"color": colours.to_rgba(number)}
        style |= {"marker": "o", "zorder": 3} if trial.number == chosen else {}
        axis.plot([height(parameter, trial.params[name]) for name, parameter in space.items()], linewidth=1.6, **style)
    for place, (name, parameter) in enumerate(space.items()):
        scale_at(axis, place, parameter, name in shares)
    axis.set_xticks(range(len(space)), [name.replace("_", "\n") for name in space], fontsize=9, parse_math=False)
    axis.set(xlim=(-0.1, len(space) - 0.6), ylim=(-0.05, 1.05), yticks=[])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    if any(value(trial) is not None for trial in drawn):
        bar_above(figure, colours, axis, label)
    return figure


def height(parameter: BaseDistribution, value: Any) -> float:
    """The height of a value on its parameter's axis, from 0 for the smallest to 1 for the largest; choices are evenly
    spaced."""
    if isinstance(parameter, CategoricalDistribution):
        return (parameter.choices.index(value) + 0.5) / len(parameter.choices)
    low, high, here = (np.log(x) if parameter.log else x for x in (parameter.low, parameter.high, value))
    return float((here - low) / (high - low)) if high > low else 0.5


def scale_at(axis: Axes, place: int, parameter: BaseDistribution, share: bool) -> None:
    """Draw a parameter's axis, with its choices, or with its smallest, middle and largest value."""
    axis.axvline(place, color="0.4", linewidth=1)
    for value in marks(parameter):
        text = f"{value:.0%}" if share else f"{value:.2g}" if isinstance(value, float) else str(value)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
        axis.text(place + 0.04, height(parameter, value), text, fontsize=8, va="center", bbox=box, parse_math=False)


def marks(parameter: BaseDistribution) -> list[Any]:
    """The values that are labelled on a parameter's axis."""
    if isinstance(parameter, CategoricalDistribution):
        return list(parameter.choices)
    low, high = parameter.low, parameter.high
    middle = float(np.sqrt(low * high)) if parameter.log else (low + high) / 2
    return list(dict.fromkeys([low, round(middle) if isinstance(low, int) else middle, high]))
