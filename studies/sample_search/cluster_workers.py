"""Workers of a study of sample efficiency as tasks of a cluster."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from optuna.exceptions import StorageInternalError

from envs.common.errors import UserError
from envs.common.locks import FileLock
from generators.cluster.jobs import cancel
from generators.cluster.tasks import Tasks, print_changes, still_running
from generators.cluster.worker import Interruption
from studies.grids.grid import workers
from studies.runs.dispatch import FOLDER
from studies.sample_search.storage import Trials
from studies.sample_search.study import run_worker, searches

ASK_SECONDS = 2.0


class Worker(NamedTuple):
    """What a task works on."""

    config: Any
    study: str
    out: Path


def worker_task(worker: Worker, interruption: Interruption) -> None:
    """One worker; asked to end while it trains, it saves its state after the step and gives its trial back."""
    run_worker(*worker, interruption)


def run_on_cluster(worker: Worker, trials: Trials) -> None:
    """Run tasks until all trials have ended; of a task that fails the others take the trial."""
    asked = searches(worker.config, worker.study)
    total = sum(search.trials for search in asked)
    ended = remembered(lambda: sum(map(trials.ended, asked)))
    count = min(workers(worker.config), total - ended())
    if not count:
        return
    show = print_changes()
    tasks = Tasks(
        worker.config.cluster,
        worker.out / FOLDER,
        worker_task,
        {f"worker {number}": worker for number in range(count)},
        finished=lambda name: ended() == total,
        cores=worker.config.threads,
        gpus=int(worker.config.device.startswith("cuda")),
        at_once=count,
    )
    with one_command(worker.out / FOLDER):
        try:
            tasks.run(
                lambda name: None, lambda states: show(f"{ended()} of {total} trials have ended {states}".strip())
            )
        except UserError:
            if ended() < total:
                raise
        show(f"{total} of {total} trials have ended")
        cancel(still_running(worker.out / FOLDER).values())  # what has queued again has nothing left to do


def remembered(count: Callable[[], int]) -> Callable[[], int]:
    """`count`, asked once in a while; the last answer stands while a server doesn't give another."""
    last, asked = 0, float("-inf")

    def ask() -> int:
        nonlocal last, asked
        if time.monotonic() - asked > ASK_SECONDS:
            with contextlib.suppress(StorageInternalError):
                last = count()
            asked = time.monotonic()
        return last

    return ask


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
