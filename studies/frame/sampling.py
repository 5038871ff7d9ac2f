"""Spaces of parameters: conversion to and from points of a unit cube, evenly spread points, and two samplers over the
whole space: TPE, and one near the boundary of a target."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import optuna
from jaxtyping import Float64
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial
from scipy.stats import norm, qmc

from menagerie.models.spec import Range
from menagerie.studies.analysis.pareto import CHANCE

Space = Mapping[str, BaseDistribution]
Params = dict[str, Any]
# Length scale of the Gaussian process in the unit cube. It isn't fitted, because a dozen points don't determine it.
REACH = 0.5
# Variance of noise, as a share of the variance of the predicted values.
NOISE = 0.05
# Candidates from which the sampler takes the best.
CANDIDATES = 512

Guess = Callable[[Float64[np.ndarray, "m d"]], tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]]


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """Convert a range or the choices of a model's spec to a distribution of Optuna."""
    if not isinstance(values, Range):
        return CategoricalDistribution(values)
    if isinstance(values.least, int) and isinstance(values.most, int):
        return IntDistribution(values.least, values.most, log=values.log)
    return FloatDistribution(values.least, values.most, log=values.log)


def can_have(values: BaseDistribution, value: str | float | int | None) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return bool(values.low <= (value or 0) <= values.high)


def to_cube(params: Mapping[str, Any], space: Space) -> list[float]:
    """Convert parameters to a point of the unit cube."""
    return [value_to_share(values, params[name]) for name, values in space.items()]


def value_to_share(values: BaseDistribution, value: Any) -> float:
    """Return how far a value lies between a parameter's least and greatest value, from 0 to 1; choices are evenly
    spaced."""
    if isinstance(values, CategoricalDistribution):
        return (values.choices.index(value) + 0.5) / len(values.choices)
    scale = math.log if values.log else float
    low, high = scale(values.low), scale(values.high)
    return (scale(value) - low) / (high - low) if high > low else 0.0


def from_cube(point: Sequence[float], space: Space) -> Params:
    """Return the parameters at a point of the unit cube; whole numbers are rounded."""
    return {
        name: share_to_value(values, float(share)) for (name, values), share in zip(space.items(), point, strict=True)
    }


def share_to_value(values: BaseDistribution, share: float) -> Any:
    """Return a parameter's value at `share` of the way from its least to its greatest, or along the list of its
    choices."""
    if isinstance(values, CategoricalDistribution):
        return values.choices[min(int(share * len(values.choices)), len(values.choices) - 1)]
    if values.log:
        exact = values.low * (values.high / values.low) ** share
        return round(exact) if isinstance(values, IntDistribution) else min(max(exact, values.low), values.high)
    if values.step is None:
        return min(values.low + share * (values.high - values.low), values.high)
    steps = round(share * (values.high - values.low) / values.step)
    return round(min(values.low + steps * values.step, values.high), 10)


def spread_points(space: Space, count: int, seed: int) -> list[Params]:
    """Return `count` evenly spread points of the space (Halton 1960)."""
    return [from_cube(point, space) for point in qmc.Halton(len(space), seed=seed).random(max(count, 0)).tolist()]


class SpaceSampler(TPESampler):
    """Optuna's TPE for one or several objectives (Ozaki et al. 2020). It models the whole space as soon as there is a
    trial."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed % 2**32)
        self.space = space

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {name: values for name, values in self.space.items() if not values.single()}


def surrogate(points: Float64[np.ndarray, "n d"], values: Float64[np.ndarray, " n"]) -> Guess:
    """Fit a Gaussian process (scikit-learn's) to values; returns a function that predicts mean and standard deviation
    at other points."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(REACH) + WhiteKernel(NOISE)
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None).fit(points, values)
    return lambda others: process.predict(others, return_std=True)


def log_odds_above_chance(accuracy: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Return the log-odds of (accuracy - chance) / (1 - chance). On this scale more data still makes a difference near
    100 %."""
    share = np.clip((accuracy - CHANCE) / (1 - CHANCE), 0.02, 0.995)
    return np.log(share / (1 - share))


def trend(costs: Float64[np.ndarray, " n"], odds: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " 2"]:
    """Fit a line of log-odds by the logarithm of costs; returns its slope and intercept. It is flat where costs are all
    alike."""
    if len(np.unique(costs)) < 2:
        return np.array([0.0, odds.mean()])
    return np.polyfit(np.log(costs), odds, 1)


class BoundarySampler(BaseSampler):
    """Searches for the least cost that reaches a target: constrained expected improvement (Gardner et al. 2014).

    The cost of a setting is known. Whether it reaches the target is predicted from the trials that ended (their values
    are cost and accuracy): by a line of log-odds over log cost, and a Gaussian process of the residuals. The sampler
    takes the candidate with the largest (probability of reaching the target) x log(cost of the cheapest trial that
    reached it / cost of the candidate).
    """

    def __init__(self, space: Space, cost: Callable[[Mapping[str, Any]], float], target: float, seed: int) -> None:
        self.space, self.cost, self.target, self.seed = space, cost, target, seed

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Space:
        return self.space

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        """Return the best of many candidates drawn at random."""
        tried = [other for other in study.get_trials(deepcopy=False) if other.params.keys() == self.space.keys()]
        known = {tuple(other.params[name] for name in self.space) for other in tried}
        cube = np.random.default_rng(self.seed).random((CANDIDATES, len(self.space)))
        drawn = {tuple(params.values()): params for params in (from_cube(point, self.space) for point in cube.tolist())}
        candidates = [params for key, params in drawn.items() if key not in known] or list(drawn.values())
        ended = [other for other in tried if other.values]
        return candidates[int(np.argmax(self._gains(ended, candidates)))] if ended else candidates[0]

    def _gains(self, ended: Sequence[FrozenTrial], candidates: Sequence[Params]) -> Float64[np.ndarray, " n"]:
        accuracy = np.array([trial.values[1] for trial in ended])
        costs = np.array([self.cost(trial.params) for trial in ended], np.float64)
        others = np.array([self.cost(params) for params in candidates], np.float64)
        line = trend(costs, log_odds_above_chance(accuracy))
        rest = log_odds_above_chance(accuracy) - np.polyval(line, np.log(costs))
        guess = surrogate(np.array([to_cube(trial.params, self.space) for trial in ended]), rest)
        mean, deviation = guess(np.array([to_cube(params, self.space) for params in candidates]))
        wanted = log_odds_above_chance(np.full(len(others), self.target)) - np.polyval(line, np.log(others))
        reached = accuracy >= self.target
        best = costs[reached].min() if reached.any() else 2 * costs.max()
        return norm.sf(wanted, mean, np.maximum(deviation, 1e-9)) * np.maximum(np.log(best / others), 0)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> NoReturn:
        """Raise, because parameters are never drawn one by one."""
        raise NotImplementedError(param_name)
