"""A scorer's reader that is given other scene graphs than the data's."""

from collections.abc import Callable, Sequence

import torch

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.scorer import Tensors, TextReader


class RegraphedReader:
    """Reads as `reader` does, but of each caption the graph that `graphs` gives for it and its own one."""

    def __init__(self, reader: TextReader, graphs: Callable[[str, SceneGraph], SceneGraph]) -> None:
        self.reader, self.graphs = reader, graphs
        self.captions = getattr(reader, "captions", 1)  # of each image, for `menagerie.models.training.feed`

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> Tensors:
        """What the reader makes of the captions and their other graphs."""
        return self.reader(captions, list(map(self.graphs, captions, graphs)), generator, own)

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool] | None:
        """Which of these texts the reader cuts, if it says so."""
        cut = getattr(self.reader, "cut", None)
        return cut(captions, list(map(self.graphs, captions, graphs))) if cut else None
