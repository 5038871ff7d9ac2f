"""A code made by hand that satisfies all conditions on an ideal CLIP, and the trade-off between them.

As inequalities, the conditions (Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes!) don't contradict one another.
But the code that is best for categorisation is the sum of concepts alone, and that one contradicts binding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from jaxtyping import Float

LEFT, RIGHT = 0, 1
Object = tuple[int, int | None, int | None]
"""An object, its attribute and its place. None leaves attribute or place out."""
Vector = Float[np.ndarray, " d"]


@dataclass(frozen=True)
class IdealCode:
    """A code for images and texts alike: the unit vector of object + attribute + weight (object with attribute) +
    weight (object with place), summed over all that a scene shows. Each object, attribute and combination has a
    direction of its own. "no x" is the sum of all objects less 2 x."""

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
        return unit(present * self._weights)

    def attribute(self, attribute: int) -> Vector:
        return np.eye(len(self._weights))[self.objects + attribute]

    def no(self, x: int) -> Vector:
        present = np.zeros(len(self._weights))
        present[: self.objects] = 1
        present[x] = -1
        return unit(present)


def unit(vector: Vector) -> Vector:
    return vector / np.linalg.norm(vector)


def least_margins(code: IdealCode) -> dict[str, float]:
    """Return the smallest margin of each condition over all scenes of up to two objects. If it is positive, the
    condition holds in all of them."""
    conditions = {
        "categorisation": categorisation,
        "attribute binding": attribute_binding,
        "place": place,
        "negation": negation,
    }
    triples = list(permutations(range(code.objects), 3))
    return {name: min(float(m) for triple in triples for m in of(code, *triple)) for name, of in conditions.items()}


def pair_margins(code: IdealCode) -> tuple[float, float]:
    """Return two margins for an image of two objects with attributes: by how much its swap is nearer than the swap with
    another object in it, and by how much the image itself is nearer than its swap. They are the same for every
    image."""
    image, swap = code.of((0, 0, None), (1, 1, None)), code.of((0, 1, None), (1, 0, None))
    other = code.of((2, 1, None), (1, 0, None))
    return float(image @ swap - image @ other), float(1 - image @ swap)


def categorisation(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins by which codes that share an object are nearer than codes that don't, whatever their attributes
    and places."""
    one, two, three = (code.of((obj, None, None)) for obj in (x, y, z))
    both = code.of((x, None, None), (y, None, None))
    yield 1 - one @ two
    yield both @ one - both @ three
    yield code.of((x, None, LEFT)) @ code.of((x, None, RIGHT)) - one @ two
    for a, b in permutations(range(code.attributes), 2):
        yield code.of((x, a, None)) @ code.of((x, b, None)) - one @ two


def attribute_binding(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins by which a code is nearer to an object with the right attribute than to the object with another
    one, alone and beside another object."""
    for a, b in permutations(range(code.attributes), 2):
        one, other = code.of((x, a, None)), code.of((x, b, None))
        scene, swap = code.of((x, a, None), (y, b, None)), code.of((x, b, None), (y, a, None))
        yield 1 - one @ other
        yield (one - other) @ code.attribute(a)
        yield 1 - scene @ swap
        yield scene @ (one - other)


def place(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins by which a scene is nearer to what has an object in the same place than to the same with places
    exchanged."""
    scene, mirror = code.of((x, None, LEFT), (y, None, RIGHT)), code.of((x, None, RIGHT), (y, None, LEFT))
    yield 1 - scene @ mirror
    yield scene @ code.of((x, None, LEFT), (z, None, RIGHT)) - scene @ code.of((x, None, RIGHT), (z, None, LEFT))


def negation(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins by which x is nearer to "no y" than to "no x", "no x" is nearer to "no y" than x to y, and "no
    x" is nearer to y than to x."""
    one, two = code.of((x, None, None)), code.of((y, None, None))
    yield one @ code.no(y) - one @ code.no(x)
    yield code.no(x) @ code.no(y) - one @ two
    yield two @ code.no(x) - one @ code.no(x)
