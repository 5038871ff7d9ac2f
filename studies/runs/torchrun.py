"""Training in several processes, of torchrun or of a cluster task.

torchrun starts the same command in every process; the first process of a task starts its others itself. Only the first
one runs the command. The others wait until it trains, and take the steps of its trainings with it, each with its own
GPU, if GPUs are used. They print nothing, unless something fails only in them.
"""

import contextlib
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import Stopped, UserError, run_command
from menagerie.envs.core.processes import end_with_parent, workers_context
from menagerie.studies.runs.cell import Cell, Job
from menagerie.studies.runs.data import Material
from menagerie.studies.runs.graphs import give_readers, open_material, read_graphs
from menagerie.studies.runs.machine import settle_torch, start_server
from menagerie.studies.runs.slurm import SIGNALS, Interruption

if TYPE_CHECKING:
    from menagerie.models.ranks import Ranks
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress
    from menagerie.models.training.state import History, StateFile

LONGEST_WAIT = timedelta(minutes=10)  # for another process within a step; a killed one is noticed at once
ENDLESS = timedelta(days=365)  # for the first process, which may render or evaluate for hours between trainings
HERE = "127.0.0.1"  # address of the first process of a task
ENDINGS = (*SIGNALS, signal.SIGINT)

JOINED: dict[str, "Ranks"] = {}  # this process as a rank, by the device of its trainings; empty if it trains alone


class LostProcess(UserError):
    """Raised when another process of a training has ended."""


def processes() -> int:
    """Return the number of processes that torchrun started, or 1."""
    return int(os.environ["WORLD_SIZE"]) if "RANK" in os.environ and "WORLD_SIZE" in os.environ else 1


def processes_of(study: Any) -> int:
    """Return the number of processes of each training of a study: those of torchrun, or of a task."""
    return processes() if study.cluster.engine == "none" else study.cluster.slurm.processes


def check_joined() -> None:
    """Raise in a process of torchrun that isn't connected to the others."""
    if processes() > 1 and not JOINED:
        why = f"torchrun has started {processes()} processes, each of which would do all of this"
        raise UserError(f"{why}; only commands of studies train in several processes, so start this with python")


def check_sharing(study: Any, cells: list[Cell]) -> None:
    """Raise for options and models with which several processes can't train together, if there are several."""
    count, engine = processes_of(study), study.cluster.engine
    if processes() > 1 and engine != "none":
        why = f"--cluster {engine} under torchrun would submit every run {processes()} times"
        raise UserError(f"{why}; start it with python, and give --slurm.processes for tasks of several")
    if count == 1:
        return
    if ":" in study.device:
        raise UserError(f"--device {study.device}: each of {count} processes takes a GPU of its own; write cuda")
    from menagerie.models.registry import scorer_class
    from menagerie.models.training.encoding import check_batch, check_declared

    for stage in (stage for cell in cells for stage in (cell.base, cell) if stage):
        check_batch(stage.recipe, count)
        check_declared(scorer_class(stage.model))


def join_ranks() -> "Ranks":
    """Connect to the other processes of torchrun or of a task; returns this process as a rank."""
    import torch.distributed as dist

    from menagerie.models.ranks import Ranks, Share

    try:
        dist.init_process_group("gloo", timeout=LONGEST_WAIT)
    except (ValueError, RuntimeError) as error:  # no address or port of the first process, or the port is in use
        reason = str(error).partition("\n")[0]
        why = f"RANK and WORLD_SIZE name {processes()} processes, but they can't connect: {reason}"
        raise UserError(f"{why}; start them with torchrun, or unset both") from error
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


def run_together(command: Callable[[], int | None]) -> int | None:
    """Run a command in the first process, and follow its trainings in all others; returns the exit status."""
    ranks = join_ranks()
    if ranks.share.rank:
        return follow_trainings(ranks)
    try:
        with lost_process():
            try:
                status = command()
            except (UserError, Stopped, KeyboardInterrupt, SystemExit):  # never raised within a step
                ignore_signals()
                with contextlib.suppress(RuntimeError):  # raised if they have ended before
                    dismiss(ranks)
                raise
            dismiss(ranks)
            return status
    finally:
        ignore_signals()  # torchrun sends SIGTERM to all when one has ended


def ignore_signals() -> None:
    """Ignore what torchrun and Slurm send to all processes: Ctrl-C and the signals of cluster tasks."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)


def dismiss(ranks: "Ranks") -> None:
    """Let the other processes end, as no training is left."""
    ranks.send(None)
    leave()


def leave() -> None:
    """Close the connections to other processes; else their threads would end Python with an error."""
    import torch.distributed as dist

    JOINED.clear()
    dist.destroy_process_group()


@contextlib.contextmanager
def lost_process() -> Iterator[None]:
    """Raise `LostProcess` in place of the error of a collective operation whose other side has ended."""
    import torch.distributed as dist

    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        reason = str(error).partition("\n")[0].partition(". ")[0]  # gloo adds advice
        raise LostProcess(
            f"another process of this training has ended, or doesn't answer ({reason}); "
            "the same command continues from the last state"
        ) from error


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


@contextlib.contextmanager
def lead_training(job: Job, scorer: "Scorer") -> Iterator[tuple["Ranks | None", Callable[[], None]]]:
    """Make the other processes follow a training of this job inside this context. Yields this process as a rank (None
    if it trains alone), and a function to call between steps, which raises `Stopped` after Ctrl-C or SIGTERM. After an
    error within a step this process must end, because the others wait for it there."""
    if not JOINED:
        yield None, lambda: None
        return
    from menagerie.models.checkpoint import describe_scorer
    from menagerie.models.training.encoding import check_together

    control, interruption = JOINED["cpu"], Interruption(deferred=True)
    check_together(scorer, job.cell.recipe, control.share.count)
    before = {number: signal.signal(number, interruption.request) for number in ENDINGS}
    try:
        control.send(pickle.dumps((job, describe_scorer(job.cell.model, scorer))))
        try:
            yield ranks_on(job.device), interruption.check
        except (UserError, Stopped):
            with contextlib.suppress(RuntimeError):  # raised if one of them has ended before
                control.send(None)
            raise
        control.send(None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    interruption.check()


def follow_trainings(ranks: "Ranks") -> int:
    """Follow one training after another, until the first process ends; returns the exit status."""
    warnings.simplefilter("ignore")
    ignore_signals()  # the first process saves its state after the current step, and then ends the others
    try:
        with lost_process(), open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            while (content := ranks.receive()) is not None:
                try:
                    follow_training(content)
                except UserError:
                    if ranks.receive() is not None:  # else the first process has and reports the same error
                        raise
            leave()
    except LostProcess:  # the first process or torchrun reports it
        return 1
    except UserError as error:
        raise UserError(f"in process {ranks.share.rank} of a training: {error}") from error
    return 0


def follow_training(content: bytes) -> None:
    """Take the steps of the training that the first process has announced."""
    from menagerie.models.checkpoint import build_from_config, config_of
    from menagerie.models.training.encoding import checkpoint_blocks
    from menagerie.models.training.loaders import free_memory_share
    from menagerie.models.training.loop import join_training

    job, description = pickle.loads(content)
    cell, ranks, execution = job.cell, ranks_on(job.device), job.execution
    settle_torch(job.threads)
    material = open_material(job)
    scorer = build_from_config(job.folder, cell.model, config_of(description)).to(cell.device)
    give_readers(scorer, read_graphs(job, material))
    if execution.grad_checkpointing:
        checkpoint_blocks(scorer)
    room = free_memory_share(scorer.device, execution.images_on_gpu)
    join_training(scorer, material.train, cell.recipe, cell.seed, ranks, cell.negatives, execution.loaders, room)


def run_in_processes(body: Callable[[], None], count: int, threads: int) -> None:
    """Call `body` in the first of `count` processes with `threads` threads each; waits until all have ended."""
    from torch.distributed import TCPStore

    start_server(threads)
    meeting = TCPStore(HERE, 0, is_master=True, wait_for_workers=False)  # takes a free port
    shared = {"MASTER_ADDR": HERE, "MASTER_PORT": str(meeting.port), "WORLD_SIZE": str(count)}
    shared |= {"TORCHELASTIC_USE_AGENT_STORE": "True"}  # the first process too only connects to it
    # The variables by which torchrun tells a process its rank and how to find the others.
    first, *places = [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    others = [workers_context().Process(target=follow_in_task, args=(place,)) for place in places]
    for process in others:
        process.start()
    os.environ.update(first)
    run_together(body)
    for process in others:
        process.join()


def follow_in_task(place: dict[str, str]) -> None:
    """Follow the trainings of a task's first process, and end with it, which alone handles Slurm's signals."""
    ignore_signals()
    end_with_parent()
    os.environ.update(place)
    run_command(lambda: follow_trainings(join_ranks()))
