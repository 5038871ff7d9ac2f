"""What `studies/trials/leases.py` relies on: a new Optuna that has changed it fails here, with the reason."""

import time
import tomllib
import warnings

import optuna
import pytest
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage, get_storage
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.studies.trials.leases import (
    TESTED,
    HeartbeatStorage,
    check_version,
    record_heartbeat,
    resume,
    set_state,
    without_heartbeat,
)
from menagerie.studies.trials.storage import open_storage
from tests.command import ROOT

# Optuna means them for its own loop.
pytestmark = pytest.mark.filterwarnings("ignore:Heartbeat of storage")


def changed(what):
    """What a failure says."""
    return f"Optuna {optuna.__version__} has changed {what}: adapt studies/trials/leases.py, or pin an older one"


@pytest.fixture
def storage(tmp_path):
    """A database whose heartbeats grow old at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return get_storage(RDBStorage(f"sqlite:///{tmp_path}/trials.db", heartbeat_interval=1, grace_period=1))


def test_the_installed_version_is_one_that_was_tested():
    check_version()
    for version in ("3.6.1", "6.0.0"):
        with pytest.raises(UserError, match=r"pip install 'optuna>=4,<6'"):
            check_version(version)


def test_the_project_asks_for_the_versions_that_were_tested():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"optuna>={TESTED[0]},<{TESTED[-1] + 1}" in wanted


def test_a_silent_worker_is_noticed(storage):
    study = optuna.create_study(storage=storage)
    silent, alive, waiting = (study.ask() for _ in range(3))
    assert isinstance(storage, HeartbeatStorage), changed("the names of storages' methods for heartbeats")
    for trial in (silent, alive, waiting):
        record_heartbeat(storage, trial._trial_id)
    set_state(storage, waiting._trial_id, TrialState.WAITING)
    time.sleep(2.5)
    record_heartbeat(storage, alive._trial_id)
    study_id = storage.get_study_id_from_name(study.study_name)
    assert without_heartbeat(storage, study_id) == [silent._trial_id], changed("what counts as a stale trial")


@pytest.mark.parametrize("kind", ["journal", "database"])
def test_a_running_trial_waits_again_and_goes_on_with_what_was_drawn(kind, storage, tmp_path):
    if kind == "journal":
        storage, _ = open_storage(str(tmp_path / "journal.log"))
    study = optuna.create_study(storage=storage)
    trial = study.ask()
    drawn = trial.suggest_float("x", 0, 1)
    assert set_state(storage, trial._trial_id, TrialState.WAITING), changed("how a running trial is set to waiting")
    assert study.get_trials()[0].state is TrialState.WAITING, changed("how a running trial is set to waiting")
    assert set_state(storage, trial._trial_id, TrialState.RUNNING)
    again = resume(study, trial._trial_id)
    assert (again.number, again.suggest_float("x", 0, 1)) == (0, drawn), changed(
        "how trials are made from their numbers"
    )
    study.tell(again.number, 1.0)
    assert not set_state(storage, trial._trial_id, TrialState.WAITING), changed("how trials that ended are kept")
    assert study.get_trials()[0].state is TrialState.COMPLETE
