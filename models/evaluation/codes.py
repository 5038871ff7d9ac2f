"""Each image encoded once by a scorer: its codes are kept on disk, for other benchmarks and later commands.

The last bits of a code may depend on how many images are encoded together. So blocks are always full, of images that
are still needed, and what is kept are rows, one for each image. Two things could be wrong about that, and a block of
noise rules them out for each scorer: that a row depends on its place in the block, and that a tensor's rows aren't
images. Where either is the case nothing is kept, and images are encoded as they come.

Rows are found by what decides them: the scorer's weights; the code of that noise, in which all shows that decides how
images are encoded, from a user's own class to the processor; and `fingerprint` of the image.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import torch

from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.photographs import PhotographSet
from menagerie.models.evaluation.code_store import CodeFolder, Shelf
from menagerie.models.evaluation.encoding import BLOCK, Block, encode, encoded
from menagerie.models.evaluation.forms import Form, Row, form_of, leaves, to_bytes
from menagerie.models.scorer import Scorer, Tensors, moved

Report = Callable[[int], None]


class Codes:
    """The codes that a scorer makes of images, kept in `folder`; None keeps none."""

    def __init__(self, scorer: Scorer, weights: str, resolution: int, folder: CodeFolder | None = None) -> None:
        """`weights` is the identity of the scorer, `resolution` that of its images."""
        self.scorer = scorer.eval()
        self.form: Form | None = form_of(scorer, resolution)
        self.shelf: Shelf | None = None
        if self.form and folder:
            self.shelf = Shelf(folder, digest({"weights": weights, "noise": self.form.noise}), self.form.width)

    def encode(self, bench: PhotographSet, blocks: Sequence[Block], report: Report) -> Iterator[Tensors]:
        """The code of each block of images; `report` receives how many they are."""
        if self.form is None:
            for block, code in zip(blocks, encoded(self.scorer, bench.images, blocks), strict=True):
                report(len(set(block)))
                yield code
            return
        coming = dict.fromkeys(chain.from_iterable(blocks))
        ready: dict[int, Row] = {}
        for block in blocks:
            for number in dict.fromkeys(block):
                if number not in ready:
                    row = self._kept(bench, number)
                    ready |= {number: row} if row else self._made(bench, self._missing(bench, number, coming, ready))
            report(len(set(block)))
            yield moved(self.form.stacked([ready[number] for number in block]), self.scorer.device)
            for number in set(block):
                del ready[number], coming[number]

    def _kept(self, bench: PhotographSet, number: int) -> Row | None:
        """The row of an image that was encoded before."""
        row = self.shelf.get(bench.fingerprint(number)) if self.shelf else None
        return row and self.form.from_bytes(row)

    def _missing(self, bench: PhotographSet, first: int, coming: Iterable[int], ready: dict[int, Row]) -> list[int]:
        """The image `first` and others that have no row yet, in the order in which they are wanted: a block of them."""
        wanted = [first]
        for number in coming:
            if len(wanted) == BLOCK:
                break
            if number != first and number not in ready and not self._has(bench, number):
                wanted.append(number)
        return wanted

    def _has(self, bench: PhotographSet, number: int) -> bool:
        return self.shelf is not None and bench.fingerprint(number) in self.shelf

    def _made(self, bench: PhotographSet, numbers: list[int]) -> dict[int, Row]:
        """The rows of at most a block of images."""
        pixels = bench.images(numbers)
        filled = torch.cat([pixels, pixels[:1].expand(BLOCK - len(pixels), -1, -1, -1)])
        parts = [part.cpu() for part in leaves(encode(self.scorer, filled))]
        rows = {number: tuple(part[k] for part in parts) for k, number in enumerate(numbers)}
        if self.shelf:
            self.shelf.put({bench.fingerprint(number): to_bytes(row) for number, row in rows.items()})
        return rows
