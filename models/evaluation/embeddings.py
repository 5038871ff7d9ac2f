"""Encodes each image once per scorer, and keeps the embeddings on disk for other benchmarks and later commands.

The last bits of an embedding may depend on how many images are encoded together. So images are always encoded in full
blocks, and a row is kept for each image. This requires that the embedding's tensors have a row per image, and that a
row doesn't depend on its place in the block. A block of noise checks both for each scorer; if either fails, nothing is
kept, and images are encoded in the blocks that are asked for.

The key of a row is everything that decides it: the scorer's weights; the embedding of that noise, which changes with
anything else in the encoding, from a user's class to the processor; and the image's `fingerprint`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.models.evaluation.embedding_store import EmbeddingFolder, StoredRows
from menagerie.models.evaluation.scoring import BLOCK, Block, encode_blocks, encode_pixels
from menagerie.models.scorer import Scorer, to_device
from menagerie.models.texts import Tensors, leaves, map_tensors

Report = Callable[[int], None]
Row = tuple[Tensor, ...]  # tensors of one image, on the CPU


class Embeddings:
    """Computes a scorer's embeddings of images, and keeps them in `folder` if there is one."""

    def __init__(self, scorer: Scorer, weights: str, resolution: int, folder: EmbeddingFolder | None = None) -> None:
        """`weights` identifies the scorer; `resolution` is that of its images."""
        self.scorer = scorer.eval()
        self.format: RowFormat | None = find_row_format(scorer, resolution)
        self.stored: StoredRows | None = None
        if self.format and folder:
            owner = digest({"weights": weights, "noise": self.format.noise})
            self.stored = StoredRows(folder, owner, self.format.width)

    def encode(self, bench: PhotographBenchmark, blocks: Sequence[Block], report: Report) -> Iterator[Tensors]:
        """Yield the embedding of each block of images, after calling `report` with the block's number of images."""
        if self.format is None:
            for block, embedding in zip(blocks, encode_blocks(self.scorer, bench.images, blocks), strict=True):
                report(len(set(block)))
                yield embedding
            return
        coming = Counter(chain.from_iterable(map(dict.fromkeys, blocks)))  # blocks that still need an image
        missing = (k for k in tuple(coming) if self.stored is None or bench.fingerprint(k) not in self.stored)
        ready: dict[int, Row] = {}
        for block in blocks:
            for number in dict.fromkeys(block):
                if number not in ready:
                    kept = self.stored.get(bench.fingerprint(number)) if self.stored else None
                    more = (k for k in missing if k != number and k not in ready)  # as many as fill a block
                    rows = {number: self.format.from_bytes(kept)} if kept else None
                    ready |= rows or self._encode(bench, [number, *islice(more, BLOCK - 1)])
            report(len(set(block)))
            yield to_device(self.format.stack_rows([ready[number] for number in block]), self.scorer.device)
            for number in set(block):
                coming[number] -= 1
                if not coming[number]:
                    del ready[number], coming[number]

    def _encode(self, bench: PhotographBenchmark, numbers: list[int]) -> dict[int, Row]:
        """Encode at most a block of images; return their rows by number."""
        pixels = bench.images(numbers)
        filled = torch.cat([pixels, pixels[:1].expand(BLOCK - len(pixels), -1, -1, -1)])
        parts = [part.cpu() for part in leaves(encode_pixels(self.scorer, filled))]
        rows = {number: tuple(part[k] for part in parts) for k, number in enumerate(numbers)}
        if self.stored:
            self.stored.put({bench.fingerprint(number): row_bytes(row) for number, row in rows.items()})
        return rows


class RowFormat(NamedTuple):
    """The structure of a scorer's embedding of images: tensors with a row for each image."""

    empty: Tensors
    """The embedding of zero images."""
    noise: str
    """Digest of the embedding of a fixed block of noise."""

    @property
    def width(self) -> int:
        """Number of bytes in a row."""
        return sum(part[0] for part in self._parts())

    def stack_rows(self, rows: Sequence[Row]) -> Tensors:
        """Compose the embedding of several images from their rows."""
        columns = iter([torch.stack(column) for column in zip(*rows, strict=True)])
        return map_tensors(self.empty, lambda _: next(columns))

    def from_bytes(self, content: bytes) -> Row:
        """Read a row that `row_bytes` wrote."""
        row, start = [], 0
        for size, part in self._parts():
            part_content = bytearray(content[start : start + size])
            row.append(torch.frombuffer(part_content, dtype=part.dtype).reshape(part.shape[1:]))
            start += size
        return tuple(row)

    def _parts(self) -> Iterator[tuple[int, Tensor]]:
        """Yield the tensors, each with its number of bytes per row."""
        return ((prod(part.shape[1:]) * part.element_size(), part) for part in leaves(self.empty))


def find_row_format(scorer: Scorer, resolution: int) -> RowFormat | None:
    """Find the structure of a scorer's embedding of images. Return None if it has no rows, or if a row depends on its
    place.

    It encodes one block of noise whose second half is the first half reversed.
    """
    size, generator = (BLOCK // 2, 3, resolution, resolution), torch.Generator().manual_seed(0)
    half = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
    embedding = encode_pixels(scorer, torch.cat([half, half.flip(0)]))
    parts = list(leaves(embedding))
    rows = (isinstance(part, Tensor) and part.ndim and len(part) == BLOCK and part[0].numel() for part in parts)
    if not parts or not all(rows) or not all(part.equal(part.flip(0)) for part in parts):
        return None
    hashed = hashlib.sha256(repr([(part.dtype, part.shape) for part in parts]).encode())
    hashed.update(row_bytes(tuple(part.cpu() for part in parts)))
    empty = map_tensors(embedding, lambda part: part.new_empty((0, *part.shape[1:]), device="cpu"))
    return RowFormat(empty, hashed.hexdigest())


def row_bytes(row: Row) -> bytes:
    """Return the bytes of several tensors on the CPU, one after the other."""
    return b"".join(part.reshape(-1).view(torch.uint8).numpy().tobytes() for part in row)
