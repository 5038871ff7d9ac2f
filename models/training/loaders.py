"""Batches prepared in other processes, which pass tensors through shared memory, and moved to the device.

Images stay on the device as bytes, if they fit. A batch then holds numbers of images, and the images are picked on the
device: the pixels are the same, but only numbers and texts are transferred."""

import multiprocessing
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import ENDED, FULL, free_shared_memory
from menagerie.envs.core.processes import end_with_parent, keep_sockets_short, serve
from menagerie.generators.captioned import Captioned
from menagerie.models.scorer import to_device
from menagerie.models.texts import Tensors, leaves
from menagerie.models.training.feed import Batch, Feed


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
        loader = DataLoader(
            SharedMemoryFeed(feed, workers) if workers else feed,
            batch_size=None,
            sampler=range(start, end),
            num_workers=workers,
            pin_memory=pinned,
            worker_init_fn=start_loader,
            generator=torch.Generator(),  # otherwise it draws from the global one
        )
        return raise_messages(iter(loader))
    except (BrokenPipeError, EOFError) as error:
        raise UserError(ENDED) from error


def raise_messages(parts: Iterable[Tensors | str]) -> Iterator[Tensors]:
    """Yield batches; a message in place of a batch is raised as a `UserError`."""
    for batch in parts:
        if isinstance(batch, str):
            raise UserError(batch)
        yield batch


class DeviceImages(NamedTuple):
    """All images of training data, on one device."""

    pixels: UInt8[Tensor, "n a b c"]
    """One image per item, in the memory order in which the data give it, because sums of floats depend on the order."""
    channels_last: bool
    """Whether that order is (h, w, 3); else (3, h, w)."""

    def pick(self, items: Int64[Tensor, " m"]) -> UInt8[Tensor, "m 3 h w"]:
        """Return the images of items, whose numbers must be on the same device, without waiting for the device."""
        chosen = self.pixels.index_select(0, items)
        return chosen.permute(0, 3, 1, 2) if self.channels_last else chosen


class Pieces(Dataset):
    """All images of data in order, in pieces of `size`, which processes read like batches."""

    def __init__(self, data: Captioned, size: int) -> None:
        self.data, self.starts, self.size = data, range(0, len(data), size), size

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> UInt8[Tensor, "n 3 h w"]:
        start = self.starts[number]
        return self.data.images(np.arange(start, min(start + self.size, len(self.data))))


def device_batches(
    feed: Feed, start: int, end: int, device: torch.device, workers: int = 0, room: int = 0
) -> Iterator[Batch]:
    """Yield the batches of steps `start` to `end` - 1 on the device.

    First, all images are put there if they take at most `room` bytes and the recipe shows at least as many images as
    there are; if it shows fewer, reading all would take longer than the run needs. Processes that prepare batches
    start when this is called, not with the first batch.
    """
    data, batch, held = feed.data, feed.recipe.batch, None
    if room and start < end and feed.recipe.steps * batch >= len(data) and fits_on_device(data, room, device):
        held = put_on_device(data, device, workers, batch)
    feed.numbered = held is not None
    there = (to_device(batch, device, non_blocking=True) for batch in batches(feed, start, end, device, workers))
    return there if held is None else (batch._replace(images=held.pick(batch.images)) for batch in there)


def fits_on_device(data: Captioned, room: int, device: torch.device) -> bool:
    """Return whether all images take at most `room` bytes; if they don't, print so, once."""
    need = len(data) * data.images(np.arange(1)).nbytes
    if need > room:
        print_once(
            f"the images of {data.name} take {need / 1e9:.3g} GB, and may take {room / 1e9:.3g} GB on {device} "
            "(--images-on-gpu); so each batch copies its own images"
        )
    return need <= room


@cache
def print_once(text: str) -> None:
    """Print a line, unless this process has printed it before."""
    print(text, flush=True)


def put_on_device(data: Captioned, device: torch.device, workers: int, size: int) -> DeviceImages:
    """Put all images on a device, `size` at a time, read by `workers` processes (0: by this one)."""
    first = data.images(np.arange(1))
    last = first.is_contiguous(memory_format=torch.channels_last)
    order = (0, 2, 3, 1) if last else (0, 1, 2, 3)
    pixels = torch.empty((len(data), *first.permute(order).shape[1:]), dtype=first.dtype, device=device)
    pieces, filled = Pieces(data, size), 0
    for piece in batches(pieces, 0, len(pieces), device, workers):
        pixels[filled : filled + len(piece)].copy_(piece.permute(order), non_blocking=True)
        filled += len(piece)
    return DeviceImages(pixels, last)


def free_memory_share(device: torch.device, share: float) -> int:
    """Return a share of a GPU's free memory, in bytes; 0 on a CPU, where images are in memory anyway."""
    if device.type != "cuda":
        return 0
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch keeps it for tensors
    return int(share * (torch.cuda.mem_get_info(device)[0] + unused))
