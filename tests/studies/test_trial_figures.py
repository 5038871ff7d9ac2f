"""Parallel coordinates of trials."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from menagerie.studies.frame.sampling import share_of
from menagerie.studies.frame.search_figures import CHOSEN, Parallel, marks, parallels
from menagerie.studies.pages.tune import course

SPACE = {
    "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
    "warmup": IntDistribution(20, 40),
    "architecture": CategoricalDistribution(("nano", "$\\micro{$")),
}


def trial(rate, value):
    params = {"learning_rate": rate, "warmup": 30, "architecture": "$\\micro{$"}
    state = TrialState.COMPLETE if value is not None else TrialState.FAIL
    return create_trial(params=params, distributions=SPACE, value=value, state=state)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("learning_rate", 1e-3, 0.5),
        ("learning_rate", 1e-2, 1.0),
        ("warmup", 25, 0.25),
        ("architecture", "nano", 0.25),
        ("architecture", "$\\micro{$", 0.75),
    ],
)
def test_a_value_lies_where_its_parameter_says(name, value, expected):
    assert share_of(SPACE[name], value) == pytest.approx(expected)


def test_scales_name_their_ends_and_middle():
    assert marks(SPACE["learning_rate"]) == pytest.approx([1e-4, 1e-3, 1e-2])
    assert marks(SPACE["warmup"]) == [20, 30, 40]
    assert marks(SPACE["architecture"]) == ["nano", "$\\micro{$"]
    assert marks(IntDistribution(1, 2)) == [1, 2]
    assert marks(FloatDistribution(0.5, 0.5)) == [0.5]


def test_every_trial_is_a_line_and_the_best_is_on_top():
    trials = [trial(1e-3, 0.9), trial(5e-3, None), trial(2e-4, 0.6)]
    figure = Parallel("p", trials, (60.0, 90.0)).figure()
    figure.canvas.draw()
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(SPACE)]
    assert [line.get_linestyle() for line in lines] == ["--", "-", "-"]
    assert lines[-1].get_ydata()[0] == pytest.approx(0.5)


def test_without_trials_there_is_an_empty_figure():
    for trials in ([], [optuna.trial.create_trial(value=0.5)]):
        Parallel("p", trials, (0.0, 1.0)).figure().canvas.draw()
    assert parallels({"none": []}, {})[0].figure().axes


def test_one_colour_is_one_value_for_all_models():
    trials = {"poor": [trial(1e-3, 0.5), trial(2e-3, 0.6)], "good": [trial(1e-3, 0.6), trial(2e-3, 0.9)]}
    lines = {
        model: [line.get_color() for line in part.figure().axes[0].lines if len(line.get_xdata()) == len(SPACE)]
        for model, part in zip(trials, parallels(trials, {}), strict=True)
    }
    assert lines["poor"][1] == lines["good"][0]
    assert len({lines["poor"][0], lines["poor"][1], lines["good"][1]}) == 3


def test_a_dozen_models_have_a_panel_each():
    models = [f"model {k}" for k in range(12)]
    rows = [
        {"model": model, "trial": k, "validation": 0.5 + k / 10, "repeated": 0.6 - k / 10 if k else None}
        for model in models
        for k in range(3)
    ]
    figure = course(rows, {"model 3": 2}).figure()
    figure.canvas.draw()
    assert [axis.get_title() for axis in figure.axes] == models
    rings = [line for axis in figure.axes for line in axis.lines if line.get_markersize() == CHOSEN["markersize"]]
    drawn = [y for line in rings for y in line.get_ydata()]
    assert drawn == pytest.approx([40]), "at the mean over seeds, which decides"
    (means,) = (line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "_")
    assert means == pytest.approx([60, 50, np.nan, 70, 40, np.nan], nan_ok=True), "of the trials that were repeated"
