"""Starts the workers of searches where `--cluster` says: as processes of this command, or as tasks of a cluster."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from optuna.exceptions import StorageInternalError

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.locks import FileLock
from menagerie.studies.cluster.jobs import cancel
from menagerie.studies.cluster.options import Cluster
from menagerie.studies.cluster.tasks import Tasks, print_changes, still_running
from menagerie.studies.runs.dispatch import FOLDER
from menagerie.studies.trials.queue import Search, Trials
from menagerie.studies.trials.workers import Argument, Body, run_workers

POLL_SECONDS = 2.0


class Resources(NamedTuple):
    """The most workers, and what each of them has."""

    workers: int
    threads: int
    device: str
    cluster: Cluster


def check_workers(cluster: Cluster, workers: int) -> None:
    """Raise if nobody said how many tasks a cluster shall run."""
    if cluster.engine == "slurm" and not workers:
        raise UserError("--cluster slurm needs --workers: how many tasks shall run trials")


def run_trials(
    trials: Trials,
    stages: Sequence[Sequence[Search]],
    body: Body[Argument],
    argument: Argument,
    resources: Resources,
    out: Path,
) -> None:
    """Run `body(argument, interruption)` in workers until all trials of the searches have ended.

    `body` works on one stage of searches after the other. No more workers are started than have trials.
    """
    searches = [search for stage in stages for search in stage]
    total = sum(search.trials for search in searches)
    count = min(resources.workers, total - ended(trials, searches), max(map(parallel, stages)))
    if not count:
        return
    if resources.cluster.engine == "none":
        run_workers(count, resources.threads, body, argument)
    else:
        run_tasks(trials, searches, body, argument, resources._replace(workers=count), out / FOLDER)


def ended(trials: Trials, searches: Sequence[Search]) -> int:
    """How many trials of all searches have ended."""
    return sum(map(trials.ended, searches))


def parallel(searches: Sequence[Search]) -> int:
    """How many workers can work on these searches at once."""
    return sum(min(search.at_once or search.trials, search.trials) for search in searches)


def run_tasks(
    trials: Trials,
    searches: Sequence[Search],
    body: Body[Argument],
    argument: Argument,
    resources: Resources,
    folder: Path,
) -> None:
    """Run workers as tasks until all trials have ended; of a task that fails the others take the trial."""
    total = sum(search.trials for search in searches)
    count = remembered(lambda: ended(trials, searches))
    show = print_changes()
    tasks = Tasks(
        resources.cluster,
        folder,
        body,
        {f"worker {number}": argument for number in range(resources.workers)},
        finished=lambda name: count() == total,
        cores=resources.threads,
        gpus=int(resources.device.startswith("cuda")),
        at_once=resources.workers,
    )
    with one_command(folder):
        try:
            tasks.run(
                lambda name: None, lambda states: show(f"{count()} of {total} trials have ended {states}".strip())
            )
        except UserError:
            if count() < total:
                raise
        show(f"{total} of {total} trials have ended")
        cancel(still_running(folder).values())  # what has queued again has nothing left to do


def remembered(count: Callable[[], int]) -> Callable[[], int]:
    """`count`, called once in a while; its last value stands while a server doesn't give another."""
    last, when = 0, float("-inf")

    def recent() -> int:
        nonlocal last, when
        if time.monotonic() - when > POLL_SECONDS:
            with contextlib.suppress(StorageInternalError):
                last = count()
            when = time.monotonic()
        return last

    return recent


@contextlib.contextmanager
def one_command(folder: Path) -> Iterator[None]:
    """Raise if another command waits for the tasks of `folder`: each would take the other's for its own."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    if not lock.acquire(wait=False):
        raise UserError(f"another command waits for the tasks of {folder}; let it, or end it")
    try:
        yield
    finally:
        lock.release()
