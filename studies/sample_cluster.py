"""Workers of a study of sample efficiency as tasks of a cluster."""

from pathlib import Path
from typing import Any, NamedTuple

from envs.errors import UserError
from generators.cluster_run import Tasks, print_changes
from generators.cluster_task import Interruption
from studies.cluster_cells import FOLDER
from studies.sample_run import run_worker, searches
from studies.trial_storage import Trials


class Worker(NamedTuple):
    """What a task works on."""

    config: Any
    study: str
    out: Path


def worker_task(worker: Worker, interruption: Interruption) -> None:
    """One worker; asked to end while it trains, it saves its state after the step and gives its trial back."""

    def report(step: int) -> None:
        interruption.held = step < worker.config.recipe.steps
        interruption.check()

    run_worker(*worker, report)


def run_on_cluster(worker: Worker, trials: Trials, count: int) -> None:
    """Run `count` tasks until all trials have ended; of a task that fails the others take the trial."""
    asked = searches(worker.config, worker.study)
    total = sum(search.trials for search in asked)

    def ended() -> int:
        return sum(map(trials.ended, asked))

    if ended() == total:
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
    try:
        tasks.run(lambda name: None, lambda states: show(f"{ended()} of {total} trials have ended; {states}"))
    except UserError:
        if ended() < total:
            raise
