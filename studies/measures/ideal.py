"""A constructed embedding that satisfies all conditions on an ideal CLIP, and the trade-off between them.

As inequalities, the conditions (Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes!) don't contradict one another.
But the embedding that is best for categorisation is a sum of single concepts, which can't bind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

LEFT, RIGHT = 0, 1
Object = tuple[int, int | None, int | None]
"""An object (in these papers a kind of thing, such as a cat), its attribute and its place, each as a number. None
leaves attribute or place out."""
Vector = Float[np.ndarray, " d"]


@dataclass(frozen=True)
class IdealEmbedding:
    """An embedding of images and texts alike: object + attribute + weight (object with attribute) + weight (object with
    place), summed over what a scene shows and scaled to length 1. Each object, each attribute and each combination has
    a direction of its own. "no x" is the sum of all objects minus 2 x."""

    weight: float
    objects: int = 6
    attributes: int = 4

    @cached_property
    def _weights(self) -> Vector:
        conjunctions = self.objects * (self.attributes + 2)
        return np.repeat([1.0, self.weight], [self.objects + self.attributes, conjunctions])

    def of(self, *objects: Object) -> Vector:
        """Return the unit vector of an image or a text with these objects."""
        n, m = self.objects, self.attributes
        present = np.zeros(len(self._weights))
        for x, attribute, place in objects:
            present[x] += 1
            if attribute is not None:
                present[[n + attribute, n + m + x * m + attribute]] += 1
            if place is not None:
                present[n + m + n * m + 2 * x + place] += 1
        return unit_vector(present * self._weights)

    def no(self, x: int) -> Vector:
        present = (np.arange(len(self._weights)) < self.objects).astype(float)
        present[x] = -1
        return unit_vector(present)


def unit_vector(vector: Vector) -> Vector:
    return vector / np.linalg.norm(vector)


def pair_margins(embedding: IdealEmbedding) -> tuple[float, float]:
    """Return two margins for an image of two objects with attributes: how much nearer to the image its swap is than the
    swap with one object replaced, and how much nearer the image is to itself than to its swap. Both are the same for
    every image."""
    image, swap = embedding.of((0, 0, None), (1, 1, None)), embedding.of((0, 1, None), (1, 0, None))
    other = embedding.of((2, 1, None), (1, 0, None))
    return float(image @ swap - image @ other), float(1 - image @ swap)


def least_margins(embedding: IdealEmbedding) -> dict[str, float]:
    """Return the least margin of each condition over scenes of one or two objects; above 0 it always holds. Margins are
    the same for any objects x, y, z and attributes a, b: a permutation of directions changes no product."""
    margins = list(condition_margins(embedding, 0, 1, 2, 0, 1))
    return {name: min(float(its) for one, its in margins if one == name) for name, _ in margins}


def condition_margins(embedding: IdealEmbedding, x: int, y: int, z: int, a: int, b: int) -> Iterator[tuple[str, float]]:
    """Yield each condition with the margins by which one product has to be above another."""
    of, no = embedding.of, embedding.no
    one, two, three, both = (of(*((it, None, None) for it in its)) for its in ((x,), (y,), (z,), (x, y)))
    right, wrong = of((x, a, None)), of((x, b, None))
    scene, swap = of((x, a, None), (y, b, None)), of((x, b, None), (y, a, None))
    placed, mirror = of((x, None, LEFT), (y, None, RIGHT)), of((x, None, RIGHT), (y, None, LEFT))
    # Embeddings with a common object are nearer than others, whatever attributes and places.
    yield "categorisation", 1 - one @ two
    yield "categorisation", both @ one - both @ three
    yield "categorisation", of((x, None, LEFT)) @ of((x, None, RIGHT)) - one @ two
    yield "categorisation", right @ wrong - one @ two
    # An object with the right attribute is nearer than with another, alone and beside a second object.
    yield "attribute binding", 1 - right @ wrong
    yield "attribute binding", (right - wrong)[embedding.objects + a]
    yield "attribute binding", 1 - scene @ swap
    yield "attribute binding", scene @ (right - wrong)
    # A scene is nearer to itself, and to one that shares an object in place, than to mirrors.
    yield "place", 1 - placed @ mirror
    yield "place", placed @ (of((x, None, LEFT), (z, None, RIGHT)) - of((x, None, RIGHT), (z, None, LEFT)))
    # x is nearer to "no y" than to "no x", "no x" to "no y" than x to y, "no x" to y than x.
    yield "negation", one @ (no(y) - no(x))
    yield "negation", no(x) @ no(y) - one @ two
    yield "negation", no(x) @ (two - one)
