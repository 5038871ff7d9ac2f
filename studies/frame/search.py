"""Searches with Optuna over the arms of a study. Only the command draws trials and reports results to Optuna, not the
training runs.

A search is part of a plan. Its trials are an Optuna study in one of Optuna's storages; their results are read from the
cells. A trial is created as running, with the name of the folder (its owner) that trains it, and gets its number from
Optuna. Its parameters depend only on this number and on the trials that ended before its batch. So trials don't depend
on the number of workers, nor on where a command was stopped: a trial without parameters gets the same ones when its
command is started again. Machines that share a storage create trials of their own. If two create the last one at the
same instant, the second is marked as failed and doesn't count.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import json_value
from menagerie.models.spec import Range
from menagerie.studies.frame.adaptive import IMAGINED, WHY
from menagerie.studies.frame.storage import opened
from menagerie.studies.runs.folder import describe_differences

if TYPE_CHECKING:
    from menagerie.studies.frame.arm import Arm, KnownResults

Space = Mapping[str, BaseDistribution]
Params = Mapping[str, Any]
OWNER, SETTINGS = "owner", "settings"  # attributes of a trial and of a search
STARTUP = 3  # trials of a search that are drawn at random, the first ones given among them

optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would log every trial
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # options of samplers may change
warnings.filterwarnings("ignore", ".*constraints_func", FutureWarning)  # what takes its place is new in Optuna 5


class TrialResult(NamedTuple):
    """The result of a trial's parameters so far."""

    arms: "Sequence[Arm]"
    values: tuple[float, ...] | None = None
    """The values of the objectives; None until its arms have ended, and if it is pruned."""
    pruned: str = ""
    """Why the trial will never have values; empty if it may have some."""
    attributes: Mapping[str, float] = {}
    """Further numbers that the trial is stored with, such as that of a constraint."""


def draw_by_tpe(seed: int) -> TPESampler:
    """Return Optuna's TPE, for one or several objectives (Ozaki et al. 2020), over all parameters together."""
    return TPESampler(seed=seed % 2**32, n_startup_trials=STARTUP, multivariate=True, constant_liar=True)


class GaussianProcess(GPSampler):
    """Optuna's sampler by Gaussian processes, on one thread: more would change the last digits, and so what is
    drawn."""

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Any) -> dict[str, Any]:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return super().sample_relative(study, trial, search_space)
        finally:
            torch.set_num_threads(threads)


def draw_by_constraint(seed: int, constraint: Callable[[FrozenTrial], float]) -> GaussianProcess:
    """Return the sampler for the best value among trials whose constraint is at most 0: constrained expected
    improvement (Gardner et al. 2014)."""
    given: Any = {"constraints_func": lambda trial: (constraint(trial),)}
    return GaussianProcess(seed=seed % 2**32, n_startup_trials=STARTUP, **given)


@dataclass(frozen=True)
class Search:
    """An Optuna study: its space, its sampler and its number of trials."""

    name: str
    space: Space
    trials: int
    at_once: int = 1
    """Number of trials in an owner's batch. A batch is created when the owner's batch before it has ended."""
    directions: tuple[str, ...] = ("maximize",)
    sampler: Callable[[int], BaseSampler] = draw_by_tpe
    """Makes the sampler of the trial with a given number."""
    first: Sequence[Params] = ()
    """Parameters of the first trials, all or some of them; the sampler draws the others."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that decide results. A study in the storage with other settings is refused."""

    def follow(
        self, known: "KnownResults", given: str, judge: Callable[[FrozenTrial], TrialResult]
    ) -> list[tuple[FrozenTrial, TrialResult]]:
        """Write the results of trials that have ended, create the trials that are due, and return all trials with their
        results.

        `given` is the storage as the user gave it. This is the only part of a plan that writes; called again before a
        run has ended, it writes nothing. `judge` returns a trial's result from its parameters and what is known. Trials
        of other owners have no arms, unless all their runs are here too. Raises `UserError` for a storage that fails,
        that has other settings, or whose values aren't those of the runs.
        """
        place = known.storage(given)
        while True:
            with opened(place) as storage:
                study = self.study(storage)
                trials = self.draw_missing(study, storage, known.owner)
            judged = [(trial, judge(trial)) for trial in trials if trial.params.keys() == self.space.keys()]
            with opened(place) as storage:
                told = sum(self.tell(study, storage, *each) for each in judged if is_running_of(each[0], known.owner))
                if not told and not self.create_due(study, trials, known.owner):
                    break
        for trial, tried in judged:
            self.check_values(trial, tried)
        return [(trial, result_here(trial, tried, known.owner)) for trial, tried in judged]

    def found(self, known: "KnownResults", given: str) -> list[FrozenTrial]:
        """Return the trials that there are so far, by number; writes nothing."""
        with opened(known.storage(given)) as storage:
            if self.name not in {study.study_name for study in storage.get_all_studies()}:
                return []
            trials = self.counting(optuna.load_study(study_name=self.name, storage=storage))
        return [trial for trial in trials[: self.trials] if trial.params.keys() == self.space.keys()]

    def over(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether all trials of the search have ended, on whatever machine."""
        return len(trials) >= self.trials and all(trial.state.is_finished() for trial in trials)

    def take_over(self, known: "KnownResults", given: str) -> int:
        """Make this folder the owner of all running trials of others, even if their commands still run; returns their
        number."""
        with opened(known.storage(given)) as storage:
            trials = self.counting(self.study(storage))
            left = [t for t in trials if not t.state.is_finished() and t.user_attrs[OWNER] != known.owner]
            for trial in left:
                storage.set_trial_user_attr(trial._trial_id, OWNER, known.owner)
        return len(left)

    def study(self, storage: BaseStorage) -> optuna.Study:
        """Open the search in a storage, and create it if it isn't there. Raises if it has other settings there."""
        place: Any = {"study_name": self.name, "storage": storage, "sampler": self.sampler(0)}
        try:
            study = optuna.load_study(**place)
        except KeyError:
            study = optuna.create_study(**place, directions=list(self.directions), load_if_exists=True)
        space = {name: distribution_to_json(values) for name, values in self.space.items()}
        wanted = json_value(dict(self.settings) | {"at once": self.at_once, "space": space})
        if SETTINGS not in study.user_attrs and not study.get_trials(deepcopy=False):
            study.set_user_attr(SETTINGS, wanted)
        if (there := study.user_attrs.get(SETTINGS)) is None:
            raise UserError(f"the storage has a study {self.name!r} of another program; choose another --study")
        if listed := describe_differences(there, wanted):
            raise UserError(
                f"the study {self.name!r} in this storage is of another configuration: {listed}; choose another --study"
            )
        return study

    def counting(self, study: optuna.Study) -> list[FrozenTrial]:
        """Return the trials that didn't fail, by number. Raises for a storage in which trials are missing, have values
        that no trial can have, or fail again and again."""
        trials = study.get_trials(deepcopy=False)
        counted = [trial for trial in trials if trial.state is not TrialState.FAIL]
        ended, failed = [trial for trial in counted if trial.state.is_finished()], len(trials) - len(counted)
        found = {
            "rows of trials are missing or there twice": [t.number for t in trials] != list(range(len(trials))),
            "a trial has no owner": any(OWNER not in trial.user_attrs for trial in counted),
            "a trial that ended has no parameters, or others": any(t.params.keys() != self.space.keys() for t in ended),
            "a value isn't a number": not all(math.isfinite(value) for trial in ended for value in trial.values or ()),
            f"{failed} trials failed": failed > max(self.trials, len(counted)),
        }
        why = next((text for text, wrong in found.items() if wrong), "")
        if why:
            raise UserError(f"the storage of {self.name!r} is damaged: {why}; restore it, or choose another --study")
        return counted

    def draw_missing(self, study: optuna.Study, storage: BaseStorage, owner: str) -> list[FrozenTrial]:
        """Write the parameters of the owner's trials that have none yet; returns all trials of the search. Trials above
        its number are marked as failed: others had created the last ones at the same instant."""
        trials = self.counting(study)
        for trial in trials[self.trials :]:
            if is_running_of(trial, owner):
                study.tell(trial.number, state=TrialState.FAIL)
        trials = trials[: self.trials]
        lacking = [t for t in trials if is_running_of(t, owner) and t.params.keys() != self.space.keys()]
        for trial in lacking:
            for name, value in self.draw(trial, self.counting(study), owner).items():
                values = self.space[name]
                storage.set_trial_param(trial._trial_id, name, values.to_internal_repr(value), values)
        return self.counting(study)[: self.trials] if lacking else trials

    def draw(self, trial: FrozenTrial, trials: Sequence[FrozenTrial], owner: str) -> Params:
        """Draw a trial's parameters in a temporary study. It has the trials that ended before the owner's batch, and
        the batch's earlier trials and those of other owners as running ones."""
        mine = [other.number for other in trials if other.user_attrs[OWNER] == owner]
        place = mine.index(trial.number)
        batch, later = mine[place - place % self.at_once :], mine[place:]
        sampler = RandomSampler(trial.number) if owner == IMAGINED else self.sampler(trial.number)  # a dry run is fast
        study = optuna.create_study(directions=list(self.directions), sampler=sampler)
        for other in trials:
            if other.number not in later and other.params.keys() == self.space.keys():
                study.add_trial(running(other) if other.number in batch else other)
        if trial.number < len(self.first):
            study.enqueue_trial(dict(self.first[trial.number]))
        return study.ask(dict(self.space)).params

    def tell(self, study: optuna.Study, storage: BaseStorage, trial: FrozenTrial, tried: TrialResult) -> bool:
        """Write the result of a trial, if it has ended; returns whether it has."""
        if tried.values is None and not tried.pruned:
            return False
        for name, value in {**tried.attributes, **({WHY: tried.pruned} if tried.pruned else {})}.items():
            storage.set_trial_user_attr(trial._trial_id, name, value)
        state = TrialState.PRUNED if tried.pruned else TrialState.COMPLETE
        study.tell(trial.number, None if tried.pruned else list(tried.values or ()), state, skip_if_finished=True)
        return True

    def create_due(self, study: optuna.Study, trials: Sequence[FrozenTrial], owner: str) -> bool:
        """Create a trial if one is due: the search has trials left, and the owner's batch isn't full or has ended."""
        mine = [trial for trial in trials if trial.user_attrs[OWNER] == owner]
        due = len(mine) % self.at_once or all(trial.state.is_finished() for trial in mine)
        if len(trials) >= self.trials or not due:
            return False
        study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs={OWNER: owner}))
        return True

    def check_values(self, trial: FrozenTrial, tried: TrialResult) -> None:
        """Raise if a trial that ended has other values in the storage than its runs, which are here."""
        if not trial.state.is_finished() or (tried.values is None and not tried.pruned):
            return
        there = [*(trial.values or ()), *(trial.user_attrs.get(name, math.nan) for name in tried.attributes)]
        here = [*(tried.values or ()), *tried.attributes.values()]
        same = len(there) == len(here) and (trial.state is TrialState.PRUNED) == bool(tried.pruned)
        if not same or not all(map(math.isclose, there, here)):
            raise UserError(
                f"trial {trial.number} of {self.name!r} is {trial.state.name} with {there} in the storage, not "
                f"with {here} as its runs: the storage was changed; restore it, or choose another --study"
            )


def is_running_of(trial: FrozenTrial, owner: str) -> bool:
    return not trial.state.is_finished() and trial.user_attrs[OWNER] == owner


def running(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial as it was before it ended."""
    return create_trial(state=TrialState.RUNNING, params=trial.params, distributions=trial.distributions)


def running_elsewhere(trials: Sequence[FrozenTrial], owner: str) -> list[FrozenTrial]:
    """Return the running trials of other owners."""
    return [trial for trial in trials if not trial.state.is_finished() and trial.user_attrs[OWNER] != owner]


def result_here(trial: FrozenTrial, tried: TrialResult, owner: str) -> TrialResult:
    """Return the result of a trial. If another owner trains it and not all of its runs are here, the result has no
    arms, and the values that the storage has."""
    if trial.user_attrs[OWNER] == owner or tried.values is not None or tried.pruned:
        return tried
    pruned = "it ended without a value on another machine" if trial.state is TrialState.PRUNED else ""
    return TrialResult((), tuple(trial.values) if trial.values else None, pruned)


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """Convert a range or the choices of a model's spec to a distribution of Optuna."""
    if not isinstance(values, Range):
        return CategoricalDistribution(values)
    kind = IntDistribution if isinstance(values.least, int) and isinstance(values.most, int) else FloatDistribution
    return kind(values.least, values.most, log=values.log)


def can_have(values: BaseDistribution, value: Any) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return bool(values.low <= (value or 0) <= values.high)
