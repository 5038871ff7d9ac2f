"""What the processes of torchrun do that aren't the first: they take the steps of its trainings together with it.

They print nothing, unless something fails in them alone.
"""

import contextlib
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.studies.runs.graphs import give_readers, read_graphs
from menagerie.studies.runs.machine import settle_torch
from menagerie.studies.runs.together import JOINED, LOST, join, processes, ranks_on
from menagerie.studies.runs.train import material_of

if TYPE_CHECKING:
    from menagerie.models.ranks import Ranks


def run_together(command: Callable[[], int | None]) -> int | None:
    """Run a command; returns its exit status. In other processes of torchrun than the first, follow that one."""
    if processes() == 1:
        return command()
    ranks = join()
    if ranks.share.rank:
        return follow_trainings(ranks)
    try:
        with lost_process():
            try:
                status = command()
            except (UserError, Stopped, KeyboardInterrupt, SystemExit):  # others may be of a step, where nobody hears
                with contextlib.suppress(RuntimeError):  # they have ended before
                    dismiss(ranks)
                raise
            dismiss(ranks)
            return status
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, which a process gets when another has ended


def dismiss(ranks: "Ranks") -> None:
    """Let the other processes end: there is no more to train."""
    ranks.tell(None)
    leave()


def leave() -> None:
    """Close the connections to other processes; as Python ends, their threads would end it with an error."""
    import torch.distributed as dist

    JOINED.clear()
    dist.destroy_process_group()


@contextlib.contextmanager
def lost_process() -> Iterator[None]:
    """Turn the error of a collective whose other side is gone into a line."""
    import torch.distributed as dist

    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise UserError(LOST) from error
        raise


def follow_trainings(ranks: "Ranks") -> int:
    """Follow one training after another, until the first process ends; returns the exit status."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with lost_process(), open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            while (content := ranks.hear()) is not None:
                follow_training(content)
            leave()
    except UserError as error:
        if str(error) == LOST:  # which the first one says, or torchrun of the first one
            return 1
        raise UserError(f"in process {ranks.share.rank} of torchrun: {error}") from error
    return 0


def follow_training(content: bytes) -> None:
    """Take the steps of the training that the first process has announced."""
    from menagerie.models.checkpoint import built, config_of
    from menagerie.models.training.encoding import checkpoint_blocks
    from menagerie.models.training.loop import follow

    job, description = pickle.loads(content)
    cell, ranks = job.cell, ranks_on(job.device)
    settle_torch(job.threads)
    material = material_of(job)
    scorer = built(job.folder, cell.model, config_of(description)).to(cell.device)
    give_readers(scorer, read_graphs(job, material))
    if job.execution.grad_checkpointing:
        checkpoint_blocks(scorer)
    # torchrun passes SIGTERM on to all; the first process saves its state after the step that all take now.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        follow(scorer, material.train, cell.recipe, cell.seed, ranks, cell.negatives, job.execution.loaders)
    finally:
        signal.signal(signal.SIGTERM, before)
