"""Figures of searches, drawn by Optuna."""

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
# Below so many trials noise gives parameters large importances. In simulations of four parameters without any effect
# the largest was below 0.63 in 95 % of searches with 12 trials, 0.31 with 60.
FEWEST = 60
PARALLEL = "A line for each trial of {}, through its value of each parameter; its colour is its {}."
SLICE = "Each trial of {} by its value of each parameter."
IMPORTANCE = """Shares of the variance of {1} over the trials of {0}, by parameter (functional analysis of variance).
They add up to 1, so that noise is shared out among them."""


@dataclass(frozen=True)
class SearchFigure(OwnFigure):
    """A figure of one or several searches. Draws nothing before two trials have different values."""

    plot: Callable[..., Any]
    trials: Mapping[str, Trials]
    directions: Sequence[str] = ("maximize",)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def numbers(self) -> list[dict[str, Any]]:
        """A row for each trial."""
        return [
            {"search": name, "trial": trial.number, "value": (trial.values or [None])[-1], **trial.params}
            for name, trials in self.trials.items()
            for trial in trials
        ]

    def figure(self) -> Figure | None:
        valued = [trial for trials in self.trials.values() for trial in trials if trial.values]
        if len({tuple(trial.values) for trial in valued}) < 2:
            return None
        studies = [self.study(name, trials) for name, trials in self.trials.items()]
        with plt.rc_context():  # Optuna changes the style of all figures
            axes = self.plot(studies if len(studies) > 1 else studies[0], **self.options)
        figure = getattr(axes, "figure", None) or axes.ravel()[0].figure
        figure.set_size_inches(9.5, 4.5)
        figure.subplots_adjust(bottom=0.25)  # for names of parameters
        figure.axes[0].set_facecolor("0.92")  # on which the palest line is seen
        plt.close(figure)  # pyplot would keep it
        return figure

    def study(self, name: str, trials: Trials) -> optuna.Study:
        study = optuna.create_study(directions=list(self.directions), study_name=name)
        study.add_trials(trials)
        return study


def history(trials: Mapping[str, Trials], value: str, directions: Sequence[str] = ("maximize",)) -> Part:
    """Return the figure of all trials in the order of the searches, with the best so far."""
    says = f"The {value} of each trial, in the order of the search, and the best of these so far."
    options = {"target_name": value}
    return SearchFigure("history", plots.plot_optimization_history, trials, directions, says=says, options=options)


def search_figures(
    searches: Mapping[str, Trials], value: str, directions: Sequence[str] = ("maximize",), names: str = ""
) -> Iterator[Part]:
    """Yield figures of each search by its parameters, folded; `value` names its last objective. The figures' names
    begin with `names`."""
    target = {"target": last_value} if len(directions) > 1 else {}
    for number, (name, trials) in enumerate(searches.items(), start=1):
        options = {"target_name": value, "params": varied(trials), **target}
        of: dict[str, Any] = {"trials": {name: trials}, "directions": directions, "options": options}
        says = [text.format(name, value) for text in (PARALLEL, SLICE, IMPORTANCE)]
        yield SearchFigure(f"{names}parallel-{number}", plots.plot_parallel_coordinate, **of, folded=says[0])
        yield SearchFigure(f"{names}slice-{number}", plots.plot_slice, **of, folded=says[1])
        if sum(bool(trial.values) for trial in trials) >= FEWEST:
            yield SearchFigure(f"{names}importances-{number}", plots.plot_param_importances, **of, folded=says[2])


def varied(trials: Trials) -> list[str] | None:
    """List the parameters of which the trials with values have several values; None if there are none."""
    params = [trial.params for trial in trials if trial.values]
    return [name for name in params[0] if len({its[name] for its in params}) > 1] or None if params else None


def last_value(trial: FrozenTrial) -> float:
    return trial.values[-1]
