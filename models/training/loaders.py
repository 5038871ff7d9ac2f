"""Batches from processes that prepare them, which hand over tensors through memory that they share."""

import multiprocessing
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import FULL, free_shared
from menagerie.envs.core.processes import end_with_parent, keep_sockets_short, serve
from menagerie.models.texts import leaves
from menagerie.models.training.feed import Batch, Feed


class SharedMemoryFeed(torch.utils.data.Dataset):
    """A feed in several processes: the batch of a step, or the reason why shared memory has no room for it.

    A process that finds no room for a tensor drops the batch with a traceback, and the run would wait for it for ever.
    """

    def __init__(self, feed: Feed, processes: int) -> None:
        self.feed, self.processes = feed, processes

    def __len__(self) -> int:
        return len(self.feed)

    def __getitem__(self, step: int) -> Batch | str:
        batch = self.feed[step]
        sizes = [part.numel() * part.element_size() for part in leaves(batch) if isinstance(part, Tensor)]
        need = sum(sizes) * self.processes  # the others may be at the same place
        return batch if free_shared() >= need else f"{need} bytes are needed at once, but {FULL}"


def start_loader(number: int) -> None:
    """Make a process that prepares batches end with the run; torch notices only after five seconds or more."""
    end_with_parent()


def batches(feed: Feed, start: int, end: int, device: torch.device, workers: int = 0) -> Iterator[Batch]:
    """The batches of steps `start` to `end`, in order; with `workers`, prepared in as many processes."""
    pinned = device.type == "cuda"
    if workers:
        if multiprocessing.get_start_method(allow_none=True) == "forkserver":
            serve([__name__])  # this process is a fork of such a server and has none yet: loaders are forks of its own
        keep_sockets_short()
    try:
        return checked(
            prepared(SharedMemoryFeed(feed, workers) if workers else feed, range(start, end), workers, pinned)
        )
    except (BrokenPipeError, EOFError) as error:
        raise UserError("a process that prepares batches has ended: killed, or out of memory; run it again") from error


def prepared(feed: Feed | SharedMemoryFeed, steps: range, workers: int, pinned: bool) -> Iterator[Batch | str]:
    """The batches of some steps, once all processes that prepare them have started."""
    return iter(
        torch.utils.data.DataLoader(
            feed,
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            pin_memory=pinned,
            worker_init_fn=start_loader,
            generator=torch.Generator(),  # else it draws from the global one
        )
    )


def checked(parts: Iterable[Batch | str]) -> Iterator[Batch]:
    """Batches; the reason why there is none is raised as a `UserError`."""
    for batch in parts:
        if isinstance(batch, str):
            raise UserError(batch)
        yield batch
