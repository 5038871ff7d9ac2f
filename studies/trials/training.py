"""Training runs within trials: one worker at a time for each cell; validation, which judges them; divergence."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import optuna

from menagerie.envs.core.locks import FileLock
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished


@contextlib.contextmanager
def alone(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Keep others from training the same cell; they wait and find it finished, or without `wait` get False."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    ours = lock.acquire(wait)
    try:
        yield ours
    finally:
        lock.release()


def validation(job: Job) -> float | None:
    """Accuracy on the validation subset, the only one that searches look at; None if unfinished."""
    result = finished(job.folder)
    return None if result is None else result["subsets"]["validation"]["swap"]["accuracy"]


@contextlib.contextmanager
def divergence(trial: optuna.Trial) -> Iterator[None]:
    """A run whose loss, weights or scores are no numbers prunes its trial, with the reason."""
    from menagerie.models.scorer import Diverged

    try:
        yield
    except Diverged as error:
        trial.set_user_attr("outcome", f"pruned: {error}")
        raise optuna.TrialPruned(str(error)) from error
