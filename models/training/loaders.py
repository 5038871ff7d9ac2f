"""Batches prepared in other processes, which pass tensors through shared memory."""

import multiprocessing
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import ENDED, FULL, free_shared_memory
from menagerie.envs.core.processes import end_with_parent, keep_sockets_short, serve
from menagerie.models.texts import Tensors, leaves


class SharedMemoryFeed(Dataset):
    """A feed for several processes: gives the batch of a step, or a message if shared memory has no room for it.

    torch's own loader would drop such a batch with a traceback, and the run would wait for it for ever.
    """

    def __init__(self, feed: Dataset, processes: int) -> None:
        self.feed, self.processes = feed, processes

    def __len__(self) -> int:
        return len(self.feed)

    def __getitem__(self, step: int) -> Tensors | str:
        batch = self.feed[step]
        sizes = [part.numel() * part.element_size() for part in leaves(batch) if isinstance(part, Tensor)]
        need = sum(sizes) * self.processes  # the other processes may need as much at the same time
        return batch if free_shared_memory() >= need else f"{need} bytes are needed at once, but {FULL}"


def start_loader(number: int) -> None:
    """Make this worker end when the run does; torch alone notices that only after five seconds or more."""
    end_with_parent()


def batches(feed: Dataset, start: int, end: int, device: torch.device, workers: int = 0) -> Iterator[Tensors]:
    """Yield the batches of steps `start` to `end` - 1, in order, prepared in `workers` processes (0: in this one)."""
    pinned = device.type == "cuda"
    if workers:
        if multiprocessing.get_start_method(allow_none=True) == "forkserver":
            serve([__name__])  # this process is a fork of a server and needs one of its own, of which loaders are forks
        keep_sockets_short()
    try:
        return raise_messages(
            prepare_batches(SharedMemoryFeed(feed, workers) if workers else feed, range(start, end), workers, pinned)
        )
    except (BrokenPipeError, EOFError) as error:
        raise UserError(ENDED) from error


def prepare_batches(feed: Dataset, steps: range, workers: int, pinned: bool) -> Iterator[Tensors | str]:
    """Start the processes that prepare batches, and return an iterator over the batches of these steps."""
    return iter(
        DataLoader(
            feed,
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            pin_memory=pinned,
            worker_init_fn=start_loader,
            generator=torch.Generator(),  # otherwise it draws from the global one
        )
    )


def raise_messages(parts: Iterable[Tensors | str]) -> Iterator[Tensors]:
    """Yield batches; a message in place of a batch is raised as a `UserError`."""
    for batch in parts:
        if isinstance(batch, str):
            raise UserError(batch)
        yield batch
