"""A benchmark whose images are framed as a scorer reads them."""

from collections.abc import Callable, Iterator, Sequence

from jaxtyping import UInt8
from torch import Tensor

from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Outcome, Scores
from menagerie.models.library.pictures import framed_images
from menagerie.models.towers.pixels import Framing


class Framed(Benchmark):
    """The same items over resized images; those of the scorer's own size stay as they are."""

    def __init__(self, inner: Benchmark, framing: Framing, report: Callable[[int], None] = lambda count: None) -> None:
        """`report` is called with the number of images that are read at once."""
        self.inner, self.framing, self.report = inner, framing, report
        self.name, self.items = inner.name, inner.items

    @property
    def groups(self) -> Sequence[str]:
        """Those of the benchmark."""
        return self.inner.groups

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 r r"]:
        """The images of these numbers, framed."""
        pixels, side = self.inner.images(numbers), self.framing.resolution
        self.report(len(pixels))
        return pixels if pixels.shape[-2:] == (side, side) else framed_images(pixels, self.framing)

    def blocks(self, numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        """As the benchmark keeps them together."""
        return self.inner.blocks(numbers, size)

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """By the benchmark's rule."""
        return self.inner.outcome(item, scores)
