"""Parallel coordinates of trials."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from menagerie.studies.frame.sampling import value_to_share
from menagerie.studies.frame.search_figures import Parallel, parallels

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
    assert value_to_share(SPACE[name], value) == pytest.approx(expected)


def test_without_trials_there_is_an_empty_figure():
    for trials in ([], [optuna.trial.create_trial(value=0.5)]):
        Parallel("p", trials, (0.0, 1.0)).figure().canvas.draw()
    assert parallels({"none": []}, {})[0].figure().axes
