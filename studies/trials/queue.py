"""Trials as a queue that any number of workers share.

A search is an Optuna study whose trials are all made at its start. Workers take one that waits, run
it and end it: a trial has one row whoever runs it, so none is lost and none is there twice. One
whose worker died goes back to waiting, under its own number and with what was drawn for it.
"""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import differences
from menagerie.studies.trials.leases import check_version, resume, set_state
from menagerie.studies.trials.storage import BEAT_SECONDS, open_storage


@dataclass(frozen=True)
class Search:
    """One Optuna study: its name in the storage, how many trials, and what draws and prunes them."""

    name: str
    trials: int
    directions: tuple[str, ...]
    sampler: Callable[[int], BaseSampler]  # of a trial's number: what it draws depends on that, and on no worker
    pruner: BasePruner | None = None
    at_once: int = 0
    """Trials of a batch, which waits for all of the batch before; 0 for a search without batches."""

    def ready(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """The trials that wait for a worker, and not for an earlier batch to end."""
        batch = self.at_once or self.trials
        running = next((trial.number for trial in trials if not trial.state.is_finished()), self.trials)
        return [trial for trial in trials[: (running // batch + 1) * batch] if trial.state is TrialState.WAITING]


class Trials:
    """The trials of searches in one storage."""

    def __init__(self, url: str, beat_seconds: int = BEAT_SECONDS) -> None:
        check_version()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats, and options of samplers
        self.storage, self.leases = open_storage(url, beat_seconds)
        self.studies: dict[str, int] = {}  # their numbers in the storage, by name

    def open(self, search: Search, identity: dict[str, Any]) -> None:
        """Make the search, or join it; one of another configuration raises.

        What a killed process or a second machine left undone here, the next call does.
        """
        with self.leases.door():
            study = optuna.create_study(
                study_name=search.name, storage=self.storage, directions=search.directions, load_if_exists=True
            )
            number = len(study.get_trials(deepcopy=False))
            if "config" not in study.user_attrs and not number:
                study.set_user_attr("config", identity)
            check_identity(search.name, study.user_attrs.get("config"), identity)
            for _ in range(number, search.trials):
                study.enqueue_trial({})
            for trial in study.get_trials(deepcopy=False)[search.trials :]:  # two machines made them at once
                set_state(self.storage, self._id(search.name, trial.number), TrialState.FAIL)

    def names(self) -> list[str]:
        """The searches that the storage has."""
        return [study.study_name for study in self.storage.get_all_studies()]

    def _study(self, name: str) -> int:
        if name not in self.studies:
            self.studies[name] = self.storage.get_study_id_from_name(name)
        return self.studies[name]

    def _id(self, name: str, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self._study(name), number)

    def all(self, search: Search) -> list[FrozenTrial]:
        """The trials of a search, by number."""
        return self.storage.get_all_trials(self._study(search.name), deepcopy=False)[: search.trials]

    def ended(self, search: Search) -> int:
        """How many of its trials are complete or pruned."""
        return sum(trial.state.is_finished() for trial in self.all(search))

    def all_ended(self, start: str) -> bool:
        """Whether no trial waits or runs in the searches whose names begin so, whoever opened them."""
        names = [name for name in self.names() if name.startswith(start)]
        trials = (self.storage.get_all_trials(self._study(name), deepcopy=False) for name in names)
        return all(trial.state.is_finished() for of_search in trials for trial in of_search)

    def take(self, search: Search) -> optuna.Trial | None:
        """A trial to run, which then is this worker's own; None where none is ready."""
        with self.leases.door():
            for trial_id in self.leases.abandoned(self._study(search.name)):
                set_state(self.storage, trial_id, TrialState.WAITING)
            for trial in search.ready(self.all(search)):
                trial_id = self._id(search.name, trial.number)
                if self._claim(trial_id):
                    sampler = search.sampler(trial.number)
                    study = optuna.load_study(
                        study_name=search.name, storage=self.storage, sampler=sampler, pruner=search.pruner
                    )
                    return resume(study, trial_id)
        return None

    def _claim(self, trial_id: int) -> bool:
        if not self.leases.hold(trial_id):  # before it runs, so that no running trial is without a lease
            return False
        if set_state(self.storage, trial_id, TrialState.RUNNING):
            return True
        self.leases.free(trial_id)
        return False

    def end(self, trial: optuna.Trial, values: Sequence[float] | None) -> None:
        """End a trial with its values, or as pruned with None."""
        state = TrialState.PRUNED if values is None else TrialState.COMPLETE
        trial_id = self._id(trial.study.study_name, trial.number)
        # One that was taken for dead waits again or was ended by another: that one's result stands.
        if self.storage.get_trial(trial_id).state is not TrialState.WAITING:
            with contextlib.suppress(RuntimeError):
                trial.study.tell(trial.number, values, state=state, skip_if_finished=True)
        self.leases.free(trial_id)

    def give_back(self, trial: optuna.Trial) -> bool:
        """Let a trial that can't be ended wait for another worker; False if another has ended it."""
        trial_id = self._id(trial.study.study_name, trial.number)
        waits = set_state(self.storage, trial_id, TrialState.WAITING)
        self.leases.free(trial_id)
        return waits


def check_identity(name: str, there: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    """Raise unless the study in the storage is of this configuration."""
    if there is None:
        raise UserError(f"the storage has a study {name!r} of another program; choose another --study")
    if listed := differences(there, wanted):
        raise UserError(
            f"the study {name!r} in this storage is of another configuration: {listed}; choose another --study"
        )
