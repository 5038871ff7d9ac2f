"""Figures of searches, drawn by Optuna; optuna-dashboard has more of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import optuna
from matplotlib.figure import Figure
from optuna.trial import FrozenTrial

from menagerie.studies.frame.parts import OwnFigure, Part

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from optuna.visualization import matplotlib as plots

Trials = Sequence[FrozenTrial]


@dataclass(frozen=True)
class SearchFigure(OwnFigure):
    """A figure of one or several searches. Draws nothing before two trials have different values."""

    plot: Callable[..., Any]
    trials: Mapping[str, Trials]
    directions: Sequence[str] = ("maximize",)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def numbers(self) -> list[dict[str, Any]]:
        return [
            {"search": name, "trial": trial.number, "value": (trial.values or [None])[-1], **trial.params}
            for name, trials in self.trials.items()
            for trial in trials
        ]

    def figure(self) -> Figure | None:
        valued = [trial for trials in self.trials.values() for trial in trials if trial.values]
        if len({tuple(trial.values) for trial in valued}) < 2:
            return None
        studies = []
        for name, trials in self.trials.items():
            studies.append(optuna.create_study(directions=list(self.directions), study_name=name))
            studies[-1].add_trials(trials)
        with plt.rc_context():  # Optuna changes the style of all figures
            axes = self.plot(studies if len(studies) > 1 else studies[0], **self.options)
        figure = getattr(axes, "figure", None) or axes.ravel()[0].figure
        figure.set_size_inches(9.5, 4.5)
        figure.subplots_adjust(bottom=0.25)  # for names of parameters
        plt.close(figure)  # pyplot would keep it
        return figure


def search_figures(
    searches: Mapping[str, Trials], value: str, directions: Sequence[str] = ("maximize",), names: str = ""
) -> Iterator[Part]:
    """Yield a figure of all trials in the order of the searches and, folded, one of each search by its parameters.
    `value` names their last objective; the figures' names begin with `names`."""
    target: dict[str, Any] = {"target_name": value}
    if len(directions) > 1:
        target["target"] = lambda trial: trial.values[-1]
    look: dict[str, Any] = {"says": f"The {value} of each trial, in the order of the search.", "options": target}
    yield SearchFigure(f"{names}history", plots.plot_optimization_history, searches, directions, **look)
    for number, (name, trials) in enumerate(searches.items(), start=1):
        options = target | {"params": varied(trials)}
        look = {"folded": f"Each trial of {name} by its value of each parameter.", "options": options}
        yield SearchFigure(f"{names}slice-{number}", plots.plot_slice, {name: trials}, directions, **look)


def varied(trials: Trials) -> list[str] | None:
    """List the parameters of which the trials with values have several values; None if there are none."""
    params = [trial.params for trial in trials if trial.values]
    return [name for name in params[0] if len({its[name] for its in params}) > 1] or None if params else None
