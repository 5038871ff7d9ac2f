"""Searches with Optuna over the arms of a study. Only the command draws trials and reports results to Optuna, not the
training runs.

A search is part of a plan. Its trials are an Optuna study, in any storage that Optuna opens; their results are read
from the cells. A trial is written twice: as running, with all its parameters, and when it has ended. A batch of trials
is drawn from the results of earlier batches only. So the trials don't depend on the number of workers, nor on where
the command was stopped.

Machines that share a storage draw trials of their own, which have the owner's name as an attribute. Two machines may
draw at the same instant. For a file, a lock prevents that. For other storages each trial records the number for which
it was drawn; if another machine took that number, the trial doesn't count: its owner marks it as failed and draws
another. So a search ends with exactly its number of trials.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import json_value
from menagerie.studies.frame.storage import hold_storage, open_storage
from menagerie.studies.runs.differences import describe_differences

if TYPE_CHECKING:
    from menagerie.studies.frame.study import Arm, KnownResults

Params = Mapping[str, Any]
# Attributes of a trial: its owner, the number for which it was drawn, and its position among the first points.
OWNER, NUMBER, FIRST = "owner", "number", "first point"
SETTINGS = "settings"  # attribute of a search


class TrialResult(NamedTuple):
    """The result of a trial's parameters so far."""

    arms: "Sequence[Arm]"
    values: tuple[float, ...] | None = None
    """The values of the objectives; None until its arms have ended, and if it is pruned."""
    pruned: str = ""
    """Why the trial will never have values; empty if it may have some."""


@dataclass(frozen=True)
class Search:
    """An Optuna study: its space, its sampler and its number of trials."""

    name: str
    space: Mapping[str, BaseDistribution]
    trials: int
    at_once: int = 1
    """Number of trials in an owner's batch. A batch is drawn when the owner's batch before it has ended."""
    directions: tuple[str, ...] = ("maximize",)
    sampler: Callable[[int], BaseSampler] = lambda number: TPESampler(seed=number)
    """Makes the sampler for the trial with a given number; its draw depends on this number and on earlier batches."""
    first: Sequence[Params] = ()
    """Parameters of the first trials, which the sampler doesn't draw."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that decide results. A study in the storage with other settings is refused."""

    def follow(
        self, known: "KnownResults", storage: str, judge: Callable[[FrozenTrial], TrialResult]
    ) -> list[tuple[FrozenTrial, TrialResult]]:
        """Write the results of trials that have ended, draw the trials that are due, and return all trials with their
        results.

        `storage` is as the user gave it. This is the only part of a plan that writes; called again before a run has
        ended, it writes nothing. `judge` returns a trial's result from its parameters and what is known. Trials of
        other owners have no arms, unless all their runs are here too.
        """
        judged: dict[int, TrialResult] = {}

        def tried(trial: FrozenTrial) -> TrialResult:
            return judged.get(trial.number) or judged.setdefault(trial.number, judge(trial))

        optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would log every trial
        warnings.simplefilter("ignore", ExperimentalWarning)  # options of samplers may change
        place = known.storage(storage)
        with hold_storage(place):
            study, drawn = self.study(open_storage(place)), True
            while drawn:
                for trial in counting_trials(study):
                    if trial.user_attrs[OWNER] == known.owner and not trial.state.is_finished():
                        values, pruned = tried(trial)[1:]
                        if values is not None or pruned:
                            state = TrialState.PRUNED if pruned else TrialState.COMPLETE
                            study.tell(trial.number, None if pruned else list(values), state, skip_if_finished=True)
                drawn = self.draw_due(study, known.owner)
            return [(trial, result_here(trial, tried(trial), known.owner)) for trial in counting_trials(study)]

    def found(self, known: "KnownResults", storage: str) -> list[FrozenTrial]:
        """Return the trials that there are so far, by number; writes nothing."""
        try:
            return counting_trials(
                optuna.load_study(study_name=self.name, storage=open_storage(known.storage(storage)))
            )
        except KeyError:
            return []

    def over(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether all trials of the search have ended, on whatever machine."""
        return len(trials) >= self.trials and all(trial.state.is_finished() for trial in trials)

    def abandon(self, known: "KnownResults", storage: str) -> int:
        """Mark all running trials of other owners (folders) as failed, even if their commands still run; returns their
        number. The next command replaces them by new trials; one of the `first` parameters is repeated."""
        place = known.storage(storage)
        with hold_storage(place):
            study = self.study(open_storage(place))
            left = running_elsewhere(counting_trials(study), known.owner)
            for trial in left:
                study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        return len(left)

    def study(self, storage: optuna.storages.BaseStorage) -> optuna.Study:
        """Open the search in a storage, and create it if it isn't there. Raises if it has other settings there."""
        try:
            study = optuna.load_study(study_name=self.name, storage=storage)
        except KeyError:
            study = optuna.create_study(
                study_name=self.name, storage=storage, directions=list(self.directions), load_if_exists=True
            )
        space = {name: distribution_to_json(values) for name, values in self.space.items()}
        wanted = json_value(dict(self.settings) | {"trials": self.trials, "at once": self.at_once, "space": space})
        if SETTINGS not in study.user_attrs and not study.get_trials(deepcopy=False):
            study.set_user_attr(SETTINGS, wanted)
        there = study.user_attrs.get(SETTINGS)
        if there is None:
            raise UserError(f"the storage has a study {self.name!r} of another program; choose another --study")
        if listed := describe_differences(there, wanted):
            raise UserError(
                f"the study {self.name!r} in this storage is of another configuration: {listed}; choose another --study"
            )
        return study

    def draw_due(self, study: optuna.Study, owner: str) -> bool:
        """Draw and write the trials that are due, one after the other; returns whether there were any. Trials of this
        owner that got another number than they were drawn for are marked as failed."""
        drawn = False
        while True:
            there = study.get_trials(deepcopy=False)
            for trial in there:
                if (
                    trial.state is TrialState.RUNNING
                    and trial.user_attrs.get(OWNER) == owner
                    and not counts_in_search(trial)
                ):
                    study.tell(trial.number, state=TrialState.FAIL)
            if not self.is_due(counting_trials(study), owner):
                return drawn
            study.add_trial(self.next_trial(there, owner))
            drawn = True

    def is_due(self, trials: Sequence[FrozenTrial], owner: str) -> bool:
        """Whether to draw a trial: the search has trials left, and the owner's batch isn't full or has ended."""
        mine = [trial for trial in trials if trial.user_attrs[OWNER] == owner]
        ended = all(trial.state.is_finished() for trial in mine)
        return len(trials) < self.trials and (bool(len(mine) % self.at_once) or ended)

    def next_trial(self, trials: Sequence[FrozenTrial], owner: str) -> FrozenTrial:
        """Make a trial with the next unused `first` parameters or, after these, with parameters that the sampler draws
        given the trials that ended before the owner's batch."""
        there = [trial for trial in trials if counts_in_search(trial)]
        carried = {OWNER: owner, NUMBER: len(trials)}
        taken = {trial.user_attrs.get(FIRST) for trial in there}
        point = next((k for k in range(len(self.first)) if k not in taken), None)
        if point is None:
            mine = [trial.number for trial in there if trial.user_attrs[OWNER] == owner]
            batch = set(mine[len(mine) - len(mine) % self.at_once :])
            params = self.draw_parameters(
                [t for t in there if t.state.is_finished() and t.number not in batch], len(trials)
            )
        else:
            params, carried = self.first[point], carried | {FIRST: point}
        return create_trial(
            state=TrialState.RUNNING, params=dict(params), distributions=dict(self.space), user_attrs=carried
        )

    def draw_parameters(self, before: Sequence[FrozenTrial], number: int) -> Params:
        """Draw parameters with the sampler, given only the trials `before`, in a temporary study."""
        study = optuna.create_study(directions=list(self.directions), sampler=self.sampler(number))
        study.add_trials(before)
        return study.ask(dict(self.space)).params


def counts_in_search(trial: FrozenTrial) -> bool:
    """Whether a trial counts in its search: it didn't fail, and has the number for which it was drawn."""
    return trial.state is not TrialState.FAIL and trial.user_attrs.get(NUMBER) == trial.number


def counting_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that count in a search, by number."""
    return [trial for trial in study.get_trials(deepcopy=False) if counts_in_search(trial)]


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
