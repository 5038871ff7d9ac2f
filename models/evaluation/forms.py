"""Codes of images taken apart into rows, one for each image, and put together again."""

import hashlib
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from menagerie.models.evaluation.encoding import BLOCK, encode
from menagerie.models.scorer import Scorer, Tensors

Row = tuple[Tensor, ...]  # of one image, on the CPU


class Form(NamedTuple):
    """How a scorer's code of images is made of tensors that have a row for each image."""

    empty: Tensors
    """The code of no images."""
    noise: str
    """Digest of the code of some noise."""

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return sum(part[0] for part in self._parts())

    def stacked(self, rows: Sequence[Row]) -> Tensors:
        """The code of some images."""
        return rebuilt(self.empty, iter([torch.stack(column) for column in zip(*rows, strict=True)]))

    def from_bytes(self, content: bytes) -> Row:
        """The row that `to_bytes` was given."""
        row, start = [], 0
        for size, part in self._parts():
            own = bytearray(content[start : start + size])
            row.append(torch.frombuffer(own, dtype=part.dtype).reshape(part.shape[1:]))
            start += size
        return tuple(row)

    def _parts(self) -> Iterator[tuple[int, Tensor]]:
        """The tensors, each with the bytes of its row."""
        return ((prod(part.shape[1:]) * part.element_size(), part) for part in leaves(self.empty))


def form_of(scorer: Scorer, resolution: int) -> Form | None:
    """How a scorer's code of images is made of rows; None where it isn't, or where a row depends on its place.

    Encodes one block: noise, and the same once more in reverse.
    """
    size, generator = (BLOCK // 2, 3, resolution, resolution), torch.Generator().manual_seed(0)
    half = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
    code = encode(scorer, torch.cat([half, half.flip(0)]))
    try:
        parts = list(leaves(code))
    except TypeError:
        return None
    if not parts or not all(p.ndim and len(p) == BLOCK and p[0].numel() and p.equal(p.flip(0)) for p in parts):
        return None
    hashed = hashlib.sha256(repr([(part.dtype, part.shape) for part in parts]).encode())
    hashed.update(to_bytes(tuple(part.cpu() for part in parts)))
    empty = [part.new_empty((0, *part.shape[1:]), device="cpu") for part in parts]
    return Form(rebuilt(code, iter(empty)), hashed.hexdigest())


def leaves(code: Tensors) -> Iterator[Tensor]:
    """The tensors of a code; raises TypeError where it is made of anything but tensors and tuples of them."""
    if isinstance(code, Tensor):
        yield code
    elif isinstance(code, tuple):
        for part in code:
            yield from leaves(part)
    else:
        raise TypeError(f"a code of {type(code).__name__}")


def rebuilt(code: Tensors, parts: Iterator[Tensor]) -> Tensors:
    """A code of the same structure, of other tensors."""
    if isinstance(code, Tensor):
        return next(parts)
    own = [rebuilt(part, parts) for part in code]
    return type(code)(*own) if hasattr(code, "_fields") else tuple(own)


def to_bytes(row: Row) -> bytes:
    """The bytes of some tensors on the CPU, one after the other."""
    return b"".join(part.reshape(-1).view(torch.uint8).numpy().tobytes() for part in row)
