"""A scorer under the checks of `menagerie.models.contract`, and the texts that they use."""

from typing import NamedTuple

import torch
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.scorer import Scorer

# A pair's score may differ by this much when other pairs are scored with it: sums of floats depend on their order.
TOLERANCE = 1e-4
LEFT = "to the left of"
TEXTS = (
    ("a red cat and a white dog in the city", SceneGraph(("red cat", "white dog", "city"))),
    ("a red cat to the left of a dog in the city", SceneGraph(("red cat", "dog", "city"), (Edge(LEFT, 0, 1),))),
    ("a dog", SceneGraph(("dog",))),
    ("a white cat in the city", SceneGraph(("white cat", "city"))),
)
CAPTIONS, GRAPHS = (list(parts) for parts in zip(*TEXTS, strict=True))


class Subject(NamedTuple):
    """A scorer under test, the name of its model, and the images that the checks use."""

    model: str
    scorer: Scorer
    images: Tensor

    def similarity(self, images: list[int], texts: list[int]) -> Tensor:
        """Score each of some images with each of some texts; both are given by their indices."""
        with torch.no_grad():
            pixels = self.scorer.pixel_scale(self.images[images])
            read = self.scorer.read([CAPTIONS[k] for k in texts], [GRAPHS[k] for k in texts])
            return self.scorer.similarity(self.scorer.encode_images(pixels), self.scorer.encode_texts(read))

    def refuse(self, problem: str) -> None:
        """Raise an error that names the model."""
        raise UserError(f"model {self.model}: {problem}")


def contract_texts() -> list[str]:
    """Return all texts that the checks use: the captions, and the nodes and the predicate of their graphs."""
    return [*CAPTIONS, *(node for graph in GRAPHS for node in graph.nodes), LEFT]
