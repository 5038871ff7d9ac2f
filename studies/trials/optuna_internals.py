"""All that this project uses of Optuna beyond the interface that it documents for users.

Optuna's own loop fails a trial whose worker died. Here the trial waits again, under its own number and with
what was drawn for it, which takes these calls. tests/studies/test_optuna_internals.py says which of them a new
version has changed; pyproject.toml keeps out major versions that the tests were not run with.
"""

from typing import Protocol, runtime_checkable

import optuna
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError

# Major versions that the tests passed with, as in pyproject.toml.
TESTED = (4, 5)


@runtime_checkable
class HeartbeatStorage(Protocol):
    """What Optuna's storages in databases have beside their other methods."""

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
