"""Training in several processes: which there are, and how the first makes the others take steps with it.

torchrun starts the same command in every process. Only the first one runs it: it reads options, plans, renders,
evaluates and writes. The others wait until it trains (menagerie.studies.runs.followers). A cluster task starts the
other processes itself (menagerie.studies.runs.task_processes).
"""

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.studies.cluster.worker import SIGNALS, Interruption
from menagerie.studies.runs.cell import Cell, Job
from menagerie.studies.runs.data import Material

if TYPE_CHECKING:
    from menagerie.models.ranks import Ranks
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress
    from menagerie.models.training.state import History, StateFile

# For another process within a step. A killed one is noticed at once by its closed connections.
LONGEST_WAIT = timedelta(minutes=10)
# For the first process, which may render or evaluate for hours between trainings.
ENDLESS = timedelta(days=365)

JOINED: dict[str, "Ranks"] = {}
"""This process as a rank, by the device of its trainings; empty if it trains alone."""


def processes() -> int:
    """Return the number of processes that torchrun started; 1 without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if "RANK" in os.environ and "WORLD_SIZE" in os.environ else 1


def check_joined() -> None:
    """Raise in a process of torchrun that isn't connected to the others, because each would do everything."""
    if processes() > 1 and not JOINED:
        raise UserError(
            f"torchrun has started {processes()} processes, each of which would do all of this; only commands of "
            f"studies "
            "train in several processes, so start this with python"
        )


def join_ranks() -> "Ranks":
    """Connect to the other processes of torchrun or of a task; returns this process as a rank."""
    import torch.distributed as dist

    from menagerie.models.ranks import Ranks, Share

    try:
        dist.init_process_group("gloo", timeout=LONGEST_WAIT)
    except (ValueError, RuntimeError) as error:  # no address or port of the first process, or the port is in use
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"RANK and WORLD_SIZE name {processes()} processes, but they can't connect: {reason}; "
            "start them with torchrun, or unset both"
        ) from error
    control = dist.new_group(backend="gloo", timeout=ENDLESS)
    JOINED["cpu"] = Ranks(Share(dist.get_rank(), dist.get_world_size()), None, control)
    return JOINED["cpu"]


def ranks_on(device: str) -> "Ranks | None":
    """Return this process as a rank of trainings on `device`; None if it trains alone. All processes must call this in
    the same order: on GPUs the first call connects them."""
    if device != "cpu" and JOINED and device not in JOINED:
        import torch
        import torch.distributed as dist

        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        JOINED[device] = replace(JOINED["cpu"], group=dist.new_group(backend="nccl", timeout=LONGEST_WAIT))
    return JOINED.get(device)


@contextmanager
def lead_training(job: Job, scorer: "Scorer") -> Iterator[tuple["Ranks | None", Callable[[], None]]]:
    """Make the other processes follow a training of this job inside this context.

    Yields this process as a rank (None if it trains alone), and a function to call between steps, which raises
    `Stopped` after Ctrl-C or SIGTERM. After an error within a step this process must end, because the others wait for
    it there.
    """
    if not JOINED:
        yield None, lambda: None
        return
    from menagerie.models.checkpoint import describe_scorer
    from menagerie.models.training.encoding import check_together

    control = JOINED["cpu"]
    check_together(scorer, job.cell.recipe, control.share.count)
    interruption = Interruption(deferred=True)
    with deferred_stops(interruption):
        control.send(pickle.dumps((job, describe_scorer(job.cell.model, scorer))))
        try:
            yield ranks_on(job.device), interruption.check
        except (UserError, Stopped):
            with suppress(RuntimeError):  # raised if one of them has ended before
                control.send(None)
            raise
        control.send(None)
    interruption.check()


@contextmanager
def deferred_stops(interruption: Interruption) -> Iterator[None]:
    """Make Ctrl-C and the signals of cluster tasks only request an end inside this context."""
    before = {number: signal.signal(number, interruption.request) for number in (*SIGNALS, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_steps(
    job: Job,
    material: Material,
    scorer: "Scorer",
    file: "StateFile",
    report: Callable[["Progress"], None],
    until: int | None = None,
    history: "History | None" = None,
) -> None:
    """Train a cell's scorer, to the end or until a step, in all connected processes."""
    from menagerie.models.training.loaders import free_memory_share
    from menagerie.models.training.loop import train_scorer

    with lead_training(job, scorer) as (ranks, check):

        def pass_on(progress: "Progress") -> None:
            report(progress)
            check()

        train_scorer(
            *(scorer, material.train, job.cell.recipe, job.cell.seed, file),
            report=pass_on,
            until=until,
            negatives=job.cell.negatives,
            workers=job.execution.loaders,
            history=history,
            ranks=ranks,
            room=free_memory_share(scorer.device, job.execution.images_on_gpu),
        )


def processes_of(study: Any) -> int:
    """Return the number of processes of each training of a study: those of torchrun, or of a task."""
    return processes() if study.cluster.engine == "none" else study.cluster.slurm.processes


def check_sharing(study: Any, cells: list[Cell]) -> None:
    """Raise for options and models with which several processes can't train together, if there are several."""
    count = processes_of(study)
    if processes() > 1 and study.workers > 1:
        raise UserError(
            f"--workers {study.workers}: torchrun makes runs one after another, each training in all {processes()} "
            "processes; leave it out"
        )
    if processes() > 1 and study.cluster.engine != "none":
        raise UserError(
            f"--cluster {study.cluster.engine} under torchrun would submit every run {processes()} times; start it "
            "with python, and give --slurm.processes for tasks of several"
        )
    if count == 1:
        return
    if ":" in study.device:
        raise UserError(f"--device {study.device}: each of {count} processes takes a GPU of its own; write cuda")
    from menagerie.models.registry import scorer_class
    from menagerie.models.training.encoding import check_batch, check_declared

    for stage in (stage for cell in cells for stage in (cell.base, cell) if stage):
        check_batch(stage.recipe, count)
        check_declared(scorer_class(stage.model))
