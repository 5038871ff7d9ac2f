"""Where trials are kept: a journal file or a database, for any number of workers on any machine.

A search is an Optuna study whose trials are all made at its start. Workers take one that waits, run
it and end it: a trial has one row whoever runs it, so none is lost and none is there twice. One
whose worker died goes back to waiting, under its own number and with what was drawn for it.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from envs.common.errors import UserError
from studies.sample_search.leases import FileLeases, Heartbeats, JournalLock

# A worker of a database writes a heartbeat each so many seconds...
BEAT_SECONDS = 20
# ... and is taken for dead after so many without one.
GRACE = 3


@dataclass(frozen=True)
class Search:
    """One Optuna study: its name in the storage, how many trials, and what draws and prunes them."""

    name: str
    trials: int
    directions: tuple[str, ...]
    sampler: Callable[[int], Any]  # of a trial's number: what it draws depends on that, and on no worker
    pruner: Any = None


def open_storage(url: str, beat_seconds: int = BEAT_SECONDS) -> tuple[Any, FileLeases | Heartbeats]:
    """The storage at a URL that SQLAlchemy knows, or in a journal file, and what tells whose workers live."""
    if "://" not in url:
        return open_journal(Path(url))
    try:
        storage = get_storage(connect(url, beat_seconds))
    except Exception as error:  # whatever SQLAlchemy, a driver or a server says
        raise UserError(f"--storage {hidden(url)} can't be opened: {reason(error)}") from error
    return storage, Heartbeats(storage, beat_seconds)


def connect(url: str, beat_seconds: int, attempts: int = 5) -> RDBStorage:
    """Connect to a database and make Optuna's tables where there are none."""
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    while True:
        try:
            return RDBStorage(
                url,
                engine_kwargs={"pool_pre_ping": True},  # a server that was restarted is found again
                heartbeat_interval=beat_seconds,
                grace_period=GRACE * beat_seconds,
            )
        except (IntegrityError, ProgrammingError):  # another worker was making the same tables
            attempts -= 1
            if not attempts:
                raise
            time.sleep(1)


def open_journal(path: Path) -> tuple[Any, FileLeases]:
    """The journal at `path`, made where there is none."""
    if not path.parent.is_dir():
        raise UserError(f"--storage {path}: there is no folder {path.parent}; a database needs a URL with ://")
    locks = path.with_name(path.name + ".locks")
    locks.mkdir(exist_ok=True)
    try:
        storage = JournalStorage(JournalFileBackend(str(path), JournalLock(path, locks / "journal")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--storage {path} is not a journal of Optuna ({reason(error)})") from error
    return storage, FileLeases(storage, locks)


def hidden(url: str) -> str:
    """A URL without its password."""
    head, separator, tail = url.rpartition("@")
    return f"{head.rpartition(':')[0]}:***@{tail}" if separator and head.count(":") > 1 else url


def reason(error: BaseException) -> str:
    """The first line of what an error and its causes say, the innermost first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class Trials:
    """The trials of searches in one storage."""

    def __init__(self, url: str, beat_seconds: int = BEAT_SECONDS) -> None:
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
                self._set(self._id(search.name, trial.number), TrialState.FAIL)

    def _study(self, name: str) -> int:
        if name not in self.studies:
            self.studies[name] = self.storage.get_study_id_from_name(name)
        return self.studies[name]

    def _id(self, name: str, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self._study(name), number)

    def all(self, search: Search) -> list[Any]:
        """The trials of a search as Optuna's frozen trials, by number."""
        return self.storage.get_all_trials(self._study(search.name), deepcopy=False)[: search.trials]

    def ended(self, search: Search) -> int:
        """How many of its trials are complete or pruned."""
        return sum(trial.state.is_finished() for trial in self.all(search))

    def take(self, search: Search) -> Any | None:
        """A trial to run, which then is this worker's own; None where none waits."""
        with self.leases.door():
            for trial_id in self.leases.abandoned(self._study(search.name)):
                self._set(trial_id, TrialState.WAITING)
            for trial in self.all(search):
                if trial.state is TrialState.WAITING and self._claim(self._id(search.name, trial.number)):
                    study = optuna.load_study(
                        study_name=search.name,
                        storage=self.storage,
                        sampler=search.sampler(trial.number),
                        pruner=search.pruner,
                    )
                    return optuna.Trial(study, self._id(search.name, trial.number))
        return None

    def _claim(self, trial_id: int) -> bool:
        if not self.leases.hold(trial_id):  # before it runs, so that no running trial is without a lease
            return False
        if self._set(trial_id, TrialState.RUNNING):
            return True
        self.leases.free(trial_id)
        return False

    def _set(self, trial_id: int, state: TrialState) -> bool:
        """Whether the trial now has that state; one that another has ended keeps its own."""
        try:
            return self.storage.set_trial_state_values(trial_id, state)
        except RuntimeError:  # Optuna's: it has finished
            return False

    def end(self, trial: Any, values: Sequence[float] | None) -> None:
        """End a trial with its values, or as pruned with None."""
        state = TrialState.PRUNED if values is None else TrialState.COMPLETE
        trial_id = self._id(trial.study.study_name, trial.number)
        # One that was taken for dead waits again or was ended by another: that one's result stands.
        if self.storage.get_trial(trial_id).state is not TrialState.WAITING:
            with contextlib.suppress(RuntimeError):
                trial.study.tell(trial.number, values, state=state, skip_if_finished=True)
        self.leases.free(trial_id)

    def give_back(self, trial: Any) -> bool:
        """Let a trial that can't be ended wait for another worker; False if another has ended it."""
        trial_id = self._id(trial.study.study_name, trial.number)
        waits = self._set(trial_id, TrialState.WAITING)
        self.leases.free(trial_id)
        return waits


def check_identity(name: str, found: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    """Raise unless the study in the storage is of this configuration."""
    if found is None:
        raise UserError(f"the storage has a study {name!r} of another program; choose another --study")
    differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    if differing:
        told = ", ".join(f"{key} ({found.get(key)} there, {wanted.get(key)} asked)" for key in differing)
        raise UserError(
            f"the study {name!r} in this storage is of another configuration: {told}; choose another --study"
        )
