"""A space of parameters: its points as parameters, as points of a unit cube, and evenly spread; TPE over all of it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
from scipy.stats import qmc

from menagerie.models.spec import Range

Space = Mapping[str, BaseDistribution]
Params = dict[str, Any]


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """Turn a range or a choice of a model's spec into a distribution of Optuna."""
    if not isinstance(values, Range):
        return CategoricalDistribution(values)
    if isinstance(values.least, int) and isinstance(values.most, int):
        return IntDistribution(values.least, values.most, log=values.log)
    return FloatDistribution(values.least, values.most, log=values.log)


def holds(values: BaseDistribution, value: str | float | int | None) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return bool(values.low <= (value or 0) <= values.high)


def to_cube(params: Mapping[str, Any], space: Space) -> list[float]:
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
    """Evenly spread points of the space (Halton 1960)."""
    return [from_cube(point, space) for point in qmc.Halton(len(space), seed=seed).random(max(count, 0)).tolist()]


class SpaceSampler(TPESampler):
    """Optuna's TPE for one or several objectives (Ozaki et al. 2020), from the first trial on, over all of a space."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed % 2**32)
        self.space = space

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {name: values for name, values in self.space.items() if not values.single()}
