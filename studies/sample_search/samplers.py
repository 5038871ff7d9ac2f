"""The space of settings, a smooth guess of accuracy between those that were tried, and what draws near a target."""

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np
import optuna
from jaxtyping import Float64
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState
from scipy.stats import norm

from menagerie.envs.core.identity import seed_of
from menagerie.studies.analysis.pareto import CHANCE
from menagerie.studies.sample_search.budget import Config
from menagerie.studies.trials.space import Params, Space, from_cube, spread, to_cube

# How far apart, in a cube of side 1, settings say of each other: half an edge. Not fitted: a dozen
# points don't determine it.
REACH = 0.5
# Variance put down to chance, as a share of the variance of what is guessed.
NOISE = 0.05

Guess = Callable[[Float64[np.ndarray, "m d"]], tuple[Float64[np.ndarray, " m"], Float64[np.ndarray, " m"]]]


def surrogate(points: Float64[np.ndarray, "n d"], values: Float64[np.ndarray, " n"]) -> Guess:
    """Gaussian process regression (scikit-learn's): gives mean and standard deviation at other points."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(REACH) + WhiteKernel(NOISE)
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None).fit(points, values)
    return lambda others: process.predict(others, return_std=True)


def log_odds(accuracy: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Accuracy above chance on a scale without ends, on which more data goes on to count near 100 %."""
    share = np.clip((accuracy - CHANCE) / (1 - CHANCE), 0.02, 0.995)
    return np.log(share / (1 - share))


def trend(images: Float64[np.ndarray, " n"], odds: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " 2"]:
    """Slope and height of the line of log-odds by the logarithm of images; flat where images are all alike."""
    if len(np.unique(images)) < 2:
        return np.array([0.0, odds.mean()])
    return np.polyfit(np.log(images), odds, 1)


# Candidates of which the boundary sampler takes the best.
CANDIDATES = 512
# A trial is pruned if it lies so far below every one that reached the target, at the same step.
MARGIN = 0.1


def space(config: Config) -> dict[str, BaseDistribution]:
    """The parameters to be searched, with their ranges; pairs and hard negatives are rounded to whole pairs
    (`setting_of`)."""
    return {
        "pairs": FloatDistribution(min(config.pairs), max(config.pairs), step=0.05),
        "hard_negatives": FloatDistribution(min(config.hard_negatives), max(config.hard_negatives), step=0.25),
        "singles_views": IntDistribution(1, config.views, log=True),
        "singles_share": FloatDistribution(min(config.singles_shares), max(config.singles_shares), step=0.1),
    }


def first_points(space: Space, most: Params, count: int, seed: int) -> list[Params]:
    """The first settings: all data, as far as the space has it, which says whether a target can be reached; then evenly
    spread ones."""
    nearest = from_cube(to_cube(most, space), space)  # steps need not end at the most of a range
    return [nearest, *spread(space, count - 1, seed)][:count]


class BoundarySampler(BaseSampler):
    """Looks for the fewest images that reach a target: constrained expected improvement (Gardner et al. 2014).

    How many images a setting has is known; whether it reaches the target is guessed from the trials
    that ended: by how many images they had, and by what lay above or below that line near by. Taken
    is the candidate with the most of (chance to reach it) x (logarithm of images saved against the
    best): such candidates lie at the boundary, just above and just below.
    """

    def __init__(
        self, space: Space, first: Sequence[Params], images: Callable[[Params], int], target: float, seed: int
    ) -> None:
        self.space, self.first, self.images, self.target, self.seed = space, first, images, target, seed

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Space:
        return self.space

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        """One of the first points, or the best of many candidates."""
        if trial.number < len(self.first):
            return self.first[trial.number]
        tried = [other for other in study.get_trials(deepcopy=False) if other.params.keys() == self.space.keys()]
        ended = [other for other in tried if "accuracy" in other.user_attrs and other.state.is_finished()]
        known = {tuple(other.params[name] for name in self.space) for other in tried}
        cube = np.random.default_rng(seed_of(self.seed, trial.number)).random((CANDIDATES, len(self.space)))
        drawn = {tuple(params.values()): params for params in (from_cube(point, self.space) for point in cube.tolist())}
        candidates = [params for key, params in drawn.items() if key not in known] or list(drawn.values())
        if not ended:
            return candidates[0]
        return candidates[int(np.argmax(self._gains(ended, candidates)))]

    def _gains(self, ended: Sequence[FrozenTrial], candidates: Sequence[Params]) -> np.ndarray:
        accuracy = np.array([trial.user_attrs["accuracy"] for trial in ended])
        images = np.array([self.images(trial.params) for trial in ended], np.float64)
        others = np.array([self.images(params) for params in candidates], np.float64)
        line = trend(images, log_odds(accuracy))
        rest = log_odds(accuracy) - np.polyval(line, np.log(images))
        guess = surrogate(np.array([to_cube(trial.params, self.space) for trial in ended]), rest)
        mean, deviation = guess(np.array([to_cube(params, self.space) for params in candidates]))
        wanted = log_odds(np.full(len(others), self.target)) - np.polyval(line, np.log(others))
        whole = np.array([trial.state is TrialState.COMPLETE for trial in ended])
        reached = whole & (accuracy >= self.target)
        best = images[reached].min() if reached.any() else 2 * images.max()
        return norm.sf(wanted, mean, np.maximum(deviation, 1e-9)) * np.maximum(np.log(best / others), 0)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> NoReturn:
        """Raise: parameters are never drawn one by one."""
        raise NotImplementedError(param_name)


class ReachPruner(BasePruner):
    """Prunes a trial far below every one that reached the target, at the same step. Accuracy is reported."""

    def __init__(self, target: float) -> None:
        self.target = target

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether to stop the trial; never before another has reached the target."""
        reached = [
            other.intermediate_values[trial.last_step]
            for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if other.user_attrs["accuracy"] >= self.target and trial.last_step in other.intermediate_values
        ]
        return bool(reached) and trial.intermediate_values[trial.last_step] < min(reached) - MARGIN
