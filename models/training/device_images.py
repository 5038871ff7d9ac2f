"""Keeps training images on the device as bytes, if they fit. A batch then holds numbers of images, and the images are
picked on the device: the pixels are the same, but only numbers and texts are transferred."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor
from torch.utils.data import Dataset

from menagerie.generators.captioned import Captioned
from menagerie.models.scorer import to_device
from menagerie.models.training.feed import Batch, Feed
from menagerie.models.training.loaders import batches


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
