"""A space of parameters: its points as parameters, as points of the unit cube, and evenly spread; samplers over it.

What a trial draws depends on its number, on the trials that ended before, and on nothing else: all of it is drawn at
once, from a generator of the trial's own. So one worker, stopped and started again, draws the same; and no two workers
share a stream of random numbers.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
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
    return [from_cube(point, space) for point in qmc.Halton(len(space), seed=seed).random(max(count, 0)).tolist()]


class SpaceSampler(TPESampler):
    """Optuna's TPE for one or several objectives (Ozaki et al. 2020), after the first points."""

    def __init__(self, space: Space, first: Sequence[Params], seed: int) -> None:
        super().__init__(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed % 2**32)
        self.space, self.first = space, first

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Space:
        return {name: values for name, values in self.space.items() if not values.single()}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        """Return one of the first points, or a point that TPE draws."""
        if trial.number < len(self.first):
            return {name: self.first[trial.number][name] for name in search_space}
        return super().sample_relative(study, trial, dict(search_space))


class BatchSampler(SpaceSampler):
    """Draws a batch of trials from what came out before the batch, so that it is the same for any number of workers."""

    def __init__(self, space: Space, first: Sequence[Params], seed: int, at_once: int) -> None:
        super().__init__(space, first, seed)
        self.at_once, self.after_first = at_once, SpaceSampler(space, (), seed)

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        """One of the first points, or what TPE draws in a study that ends before the batch."""
        if trial.number < len(self.first):
            return super().sample_relative(study, trial, search_space)
        before = optuna.create_study(directions=study.directions, sampler=self.after_first)
        before.add_trials(study.get_trials(deepcopy=False)[: trial.number - trial.number % self.at_once])
        return before.ask(dict(search_space)).params
