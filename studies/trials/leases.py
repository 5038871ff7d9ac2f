"""Which workers live: a trial belongs to its worker for as long as the worker does.

In a journal a running trial's worker holds a lock on a file beside it, which the kernel frees when the process ends,
however it ends. A database has no such locks for all its clients; there the worker writes heartbeats, and one that
hasn't for a while is taken for dead.

Optuna's own loop fails a trial whose worker died. Here the trial waits again, under its own number and with what was
drawn for it: the functions before the leases are all that this project uses of Optuna beyond the interface that it
documents for users. tests/studies/test_optuna_internals.py says which of them a new version has changed;
pyproject.toml keeps out major versions that the tests were not run with.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import optuna
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.locks import FileLock

# Major versions that the tests passed with, as in pyproject.toml.
TESTED = (4, 5)


@runtime_checkable
class HeartbeatStorage(Protocol):
    """The further methods that Optuna's database storages have for heartbeats."""

    def record_heartbeat(self, trial_id: int) -> None:
        """Write that the worker of a trial lives."""

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        """Running trials without a recent heartbeat."""


def check_version(version: str = optuna.__version__) -> None:
    """Raise for a major version of Optuna that the tests were not run with."""
    if int(version.partition(".")[0]) not in TESTED:
        wanted = f"optuna>={TESTED[0]},<{TESTED[-1] + 1}"
        raise UserError(f"searches were never tested with the installed optuna {version}: pip install '{wanted}'")


def set_state(storage: BaseStorage, trial_id: int, state: TrialState) -> bool:
    """Whether the trial now has that state, be it from running back to waiting; one that has ended keeps its own."""
    try:
        return storage.set_trial_state_values(trial_id, state)
    except RuntimeError:  # Optuna's: it has finished
        return False


def resume(study: optuna.Study, trial_id: int) -> optuna.Trial:
    """A running trial as objectives take it; what was drawn for it before is kept."""
    return optuna.Trial(study, trial_id)


def record_heartbeat(storage: HeartbeatStorage, trial_id: int) -> None:
    """Write that the worker of a trial lives."""
    storage.record_heartbeat(trial_id)


def without_heartbeat(storage: HeartbeatStorage, study_id: int) -> list[int]:
    """Running trials whose last heartbeat is older than the storage's grace period.

    Optuna's public call, `fail_stale_trials`, would fail them for good.
    """
    return storage._get_stale_trial_ids(study_id)


class FileLeases:
    """Locks on files: one for each running trial, and the door, which one worker at a time holds to hand out trials."""

    def __init__(self, storage: BaseStorage, folder: Path) -> None:
        self.storage, self.folder = storage, folder
        self.locks: dict[int, FileLock] = {}

    @contextlib.contextmanager
    def door(self) -> Iterator[None]:
        """A lock under which one worker at a time hands out trials, so that none is seen between its start and its
        lease."""
        with FileLock(self.folder / "door"):
            yield

    def hold(self, trial_id: int) -> bool:
        """Make a trial this process's own; False where another has it."""
        lock = FileLock(self.folder / str(trial_id))
        if not lock.acquire(wait=False):
            return False
        self.locks[trial_id] = lock
        return True

    def free(self, trial_id: int) -> None:
        self.locks.pop(trial_id).release()

    def abandoned(self, study_id: int) -> list[int]:
        """Running trials of a study that nobody holds; to be called behind the door."""
        running = self.storage.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        free = []
        for trial in running:
            trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
            if self.hold(trial_id):
                self.free(trial_id)
                free.append(trial_id)
        return free


class Heartbeats:
    """Optuna's heartbeats, written by a thread for as long as a trial runs."""

    def __init__(self, storage: HeartbeatStorage, seconds: int) -> None:
        self.storage, self.seconds = storage, seconds
        self.threads: dict[int, tuple[threading.Event, threading.Thread]] = {}

    @contextlib.contextmanager
    def door(self) -> Iterator[None]:
        """Databases hand out a trial once by themselves."""
        yield

    def hold(self, trial_id: int) -> bool:
        """Begin to beat for a trial; whether it is ours, the storage decides."""
        record_heartbeat(self.storage, trial_id)
        stop = threading.Event()
        thread = threading.Thread(target=self._beat, args=(trial_id, stop), daemon=True)
        self.threads[trial_id] = (stop, thread)
        thread.start()
        return True

    def _beat(self, trial_id: int, stop: threading.Event) -> None:
        while not stop.wait(self.seconds):
            with contextlib.suppress(Exception):  # a server that is away for a moment
                record_heartbeat(self.storage, trial_id)

    def free(self, trial_id: int) -> None:
        stop, thread = self.threads.pop(trial_id)
        stop.set()
        thread.join()

    def abandoned(self, study_id: int) -> list[int]:
        """Running trials of a study without a heartbeat for the storage's grace period.

        Two workers that see one in the same instant may both run it; it ends once all the same.
        """
        return without_heartbeat(self.storage, study_id)


Leases = FileLeases | Heartbeats
