"""Samplers that begin with points that are given.

What a trial draws depends on its number, on the trials that ended before, and on nothing else: all
of it is drawn at once, from a generator of the trial's own. So one worker, stopped and started
again, draws the same; and no two workers share a stream of random numbers.
"""

from collections.abc import Sequence

import optuna
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial

from menagerie.studies.trials.space import Params, Space


class SpaceSampler(TPESampler):
    """Optuna's TPE for one or several objectives (Ozaki et al. 2020), after the first points."""

    def __init__(self, space: Space, first: Sequence[Params], seed: int) -> None:
        super().__init__(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed % 2**32)
        self.space, self.first = space, first

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Space:
        """All parameters at once."""
        return {name: values for name, values in self.space.items() if not values.single()}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        """One of the first points, or what TPE draws."""
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
