"""A constructed embedding that satisfies all conditions on an ideal CLIP, and the trade-off between them.

As inequalities, the conditions (Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes!) don't contradict one another.
But the embedding that is best for categorisation is a sum of single concepts, which can't bind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

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

    def attribute(self, attribute: int) -> Vector:
        return np.eye(len(self._weights))[self.objects + attribute]

    def no(self, x: int) -> Vector:
        present = np.zeros(len(self._weights))
        present[: self.objects] = 1
        present[x] = -1
        return unit_vector(present)


def unit_vector(vector: Vector) -> Vector:
    return vector / np.linalg.norm(vector)


def least_margins(embedding: IdealEmbedding) -> dict[str, float]:
    """Return the least margin of each condition over scenes of one or two objects; above 0 it always holds."""
    conditions = {
        "categorisation": categorisation_margins,
        "attribute binding": binding_margins,
        "place": place_margins,
        "negation": negation_margins,
    }
    triples = list(permutations(range(embedding.objects), 3))
    return {
        name: min(float(m) for triple in triples for m in of(embedding, *triple)) for name, of in conditions.items()
    }


def pair_margins(embedding: IdealEmbedding) -> tuple[float, float]:
    """Return two margins for an image of two objects with attributes: how much nearer to the image its swap is than the
    swap with one object replaced, and how much nearer the image is to itself than to its swap. Both are the same for
    every image."""
    image, swap = embedding.of((0, 0, None), (1, 1, None)), embedding.of((0, 1, None), (1, 0, None))
    other = embedding.of((2, 1, None), (1, 0, None))
    return float(image @ swap - image @ other), float(1 - image @ swap)


def categorisation_margins(embedding: IdealEmbedding, x: int, y: int, z: int) -> Iterator[float]:
    """Yield by how much embeddings with a common object are nearer than others, whatever attributes and places."""
    one, two, three = (embedding.of((obj, None, None)) for obj in (x, y, z))
    both = embedding.of((x, None, None), (y, None, None))
    yield 1 - one @ two
    yield both @ one - both @ three
    yield embedding.of((x, None, LEFT)) @ embedding.of((x, None, RIGHT)) - one @ two
    for a, b in permutations(range(embedding.attributes), 2):
        yield embedding.of((x, a, None)) @ embedding.of((x, b, None)) - one @ two


def binding_margins(embedding: IdealEmbedding, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins by which an embedding is nearer to its object with the right attribute than to that object with
    another attribute, alone and beside a second object."""
    for a, b in permutations(range(embedding.attributes), 2):
        one, other = embedding.of((x, a, None)), embedding.of((x, b, None))
        scene, swap = embedding.of((x, a, None), (y, b, None)), embedding.of((x, b, None), (y, a, None))
        yield 1 - one @ other
        yield (one - other) @ embedding.attribute(a)
        yield 1 - scene @ swap
        yield scene @ (one - other)


def place_margins(embedding: IdealEmbedding, x: int, y: int, z: int) -> Iterator[float]:
    """Yield by how much a scene is nearer to itself, and to one that shares an object in place, than to mirrors."""
    scene, mirror = embedding.of((x, None, LEFT), (y, None, RIGHT)), embedding.of((x, None, RIGHT), (y, None, LEFT))
    yield 1 - scene @ mirror
    yield scene @ embedding.of((x, None, LEFT), (z, None, RIGHT)) - scene @ embedding.of(
        (x, None, RIGHT), (z, None, LEFT)
    )


def negation_margins(embedding: IdealEmbedding, x: int, y: int, z: int) -> Iterator[float]:
    """Yield by how much x is nearer to "no y" than to "no x", "no x" to "no y" than x to y, "no x" to y than x."""
    one, two = embedding.of((x, None, None)), embedding.of((y, None, None))
    yield one @ embedding.no(y) - one @ embedding.no(x)
    yield embedding.no(x) @ embedding.no(y) - one @ two
    yield two @ embedding.no(x) - one @ embedding.no(x)
