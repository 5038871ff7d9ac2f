"""Which workers live: a trial belongs to its worker for as long as the worker does.

In a journal a running trial's worker holds a lock on a file beside it, which the kernel frees when
the process ends, however it ends. A database has no such locks for all its clients; there the
worker writes heartbeats, and one that hasn't for a while is taken for dead.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from optuna.storages import BaseStorage
from optuna.trial import TrialState

from menagerie.envs.core.locks import FileLock
from menagerie.studies.trials.optuna_internals import HeartbeatStorage, record_heartbeat, without_heartbeat


class FileLeases:
    """Locks on files: one for each running trial, and the door, which one worker at a time holds to hand out trials."""

    def __init__(self, storage: BaseStorage, folder: Path) -> None:
        self.storage, self.folder = storage, folder
        self.locks: dict[int, FileLock] = {}

    @contextlib.contextmanager
    def door(self) -> Iterator[None]:
        """One worker at a time hands out trials, so that none is seen between being run and being held."""
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
