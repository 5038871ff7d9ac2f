"""A space of parameters: its points as parameters, as points of the unit cube, and evenly spread."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import qmc

Space = Mapping[str, BaseDistribution]
Params = dict[str, Any]


def draw(trial: optuna.Trial, space: Space) -> Params:
    """Let the trial's sampler give a value to every parameter."""
    for name, values in space.items():
        if isinstance(values, IntDistribution):
            trial.suggest_int(name, values.low, values.high, log=values.log)
        elif isinstance(values, FloatDistribution):
            trial.suggest_float(name, values.low, values.high, step=values.step, log=values.log)
        else:
            trial.suggest_categorical(name, values.choices)
    return dict(trial.params)


def to_cube(params: Params, space: Space) -> list[float]:
    """Parameters, numbers all of them, as a point of the unit cube."""
    point = []
    for name, values in space.items():
        scale = math.log if values.log else float
        low, high = scale(values.low), scale(values.high)
        point.append((scale(params[name]) - low) / (high - low) if high > low else 0.0)
    return point


def from_cube(point: Sequence[float], space: Space) -> Params:
    """The parameters nearest to a point of the unit cube."""
    return {name: nearest(values, float(share)) for (name, values), share in zip(space.items(), point, strict=True)}


def nearest(values: BaseDistribution, share: float) -> Any:
    """The value so far between the least and the most of a parameter, or in the list of its choices."""
    if isinstance(values, CategoricalDistribution):
        return values.choices[min(int(share * len(values.choices)), len(values.choices) - 1)]
    if values.log:
        exact = values.low * (values.high / values.low) ** share
        return round(exact) if isinstance(values, IntDistribution) else min(max(exact, values.low), values.high)
    if values.step is None:
        return min(values.low + share * (values.high - values.low), values.high)
    steps = round(share * (values.high - values.low) / values.step)
    return round(min(values.low + steps * values.step, values.high), 10)


def spread(space: Space, count: int, seed: int) -> list[Params]:
    """Evenly spread points."""
    return [from_cube(point, space) for point in qmc.Halton(len(space), seed=seed).random(max(count, 0)).tolist()]
