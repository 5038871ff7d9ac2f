"""The processes of torchrun or of a task other than the first: they take the steps of its trainings together with it.
They print nothing, unless something fails only in them.

torchrun starts them; the process of a cluster task starts its others itself, each with its own GPU, if GPUs are used.
"""

import contextlib
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import Stopped, UserError, run_command
from menagerie.envs.core.processes import end_with_parent, workers_context
from menagerie.studies.cluster.worker import SIGNALS
from menagerie.studies.runs.graphs import give_readers, read_graphs
from menagerie.studies.runs.machine import settle_torch, start_server
from menagerie.studies.runs.together import JOINED, join_ranks, ranks_on
from menagerie.studies.runs.train import open_material

if TYPE_CHECKING:
    from menagerie.models.ranks import Ranks

HERE = "127.0.0.1"  # address of the first process of a task


class LostProcess(UserError):
    """Raised when another process of a training has ended."""


def run_together(command: Callable[[], int | None]) -> int | None:
    """Run a command in the first of several processes, and follow its trainings in all others; returns the exit
    status."""
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
    """Ignore Ctrl-C and the signals of cluster tasks in this process; torchrun and Slurm send them to all processes."""
    for number in (*SIGNALS, signal.SIGINT):
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
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            reason = str(error).partition("\n")[0].partition(". ")[0]  # gloo adds advice
            raise LostProcess(
                f"another process of this training has ended, or doesn't answer ({reason}); "
                "the same command continues from the last state"
            ) from error
        raise


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
    cell, ranks = job.cell, ranks_on(job.device)
    settle_torch(job.threads)
    material = open_material(job)
    scorer = build_from_config(job.folder, cell.model, config_of(description)).to(cell.device)
    give_readers(scorer, read_graphs(job, material))
    if job.execution.grad_checkpointing:
        checkpoint_blocks(scorer)
    execution, room = job.execution, free_memory_share(scorer.device, job.execution.images_on_gpu)
    join_training(scorer, material.train, cell.recipe, cell.seed, ranks, cell.negatives, execution.loaders, room)


def run_in_processes(body: Callable[[], None], count: int, threads: int) -> None:
    """Call `body` in this process, as the first of `count` processes with `threads` threads each. All others have ended
    when this returns."""
    from torch.distributed import TCPStore

    start_server(threads)
    meeting = TCPStore(HERE, 0, is_master=True, wait_for_workers=False)  # takes a free port
    place = {"MASTER_ADDR": HERE, "MASTER_PORT": str(meeting.port), "WORLD_SIZE": str(count)}
    place |= {"TORCHELASTIC_USE_AGENT_STORE": "True"}  # the first process too only connects to it
    others = [workers_context().Process(target=follow_in_task, args=(place, rank)) for rank in range(1, count)]
    for process in others:
        process.start()
    take_place(place, 0)
    run_together(body)
    for process in others:
        process.join()


def take_place(place: dict[str, str], rank: int) -> None:
    """Set the environment variables by which torchrun tells a process its rank and how to find the others."""
    os.environ.update(place | {"RANK": str(rank), "LOCAL_RANK": str(rank)})


def follow_in_task(place: dict[str, str], rank: int) -> None:
    """Follow the trainings of a task's first process, and end with it. Slurm's signals are handled by the first process
    only."""
    ignore_signals()
    end_with_parent()
    take_place(place, rank)
    run_command(lambda: follow_trainings(join_ranks()))
