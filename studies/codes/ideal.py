"""The conditions on an ideal CLIP, and a code made by hand that satisfies all: the trade-off between them.

As inequalities the conditions (Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes!) don't contradict one another.
What contradicts binding is the code that does most for categorisation, the sum of concepts alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from jaxtyping import Float

LEFT, RIGHT = 0, 1
Thing = tuple[int, int | None, int | None]
"""An object, its attribute and its place."""
Vector = Float[np.ndarray, " d"]


@dataclass(frozen=True)
class IdealCode:
    """Unit vectors of object + attribute + weight (object with attribute) + weight (object with place), for images and
    texts alike, a direction for each; "no x" is the sum of all objects less 2 x."""

    weight: float
    objects: int = 6
    attributes: int = 4

    @cached_property
    def _weights(self) -> Vector:
        conjunctions = self.objects * (self.attributes + 2)
        return np.repeat([1.0, self.weight], [self.objects + self.attributes, conjunctions])

    def of(self, *things: Thing) -> Vector:
        """The unit vector of an image or a text with these things."""
        n, m = self.objects, self.attributes
        present = np.zeros(len(self._weights))
        for x, attribute, place in things:
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
    """The least margin of each condition over all scenes of up to two things: positive where it holds in all."""
    conditions = {
        "categorisation": categorisation,
        "attribute binding": attribute_binding,
        "place": place,
        "negation": negation,
    }
    triples = list(permutations(range(code.objects), 3))
    return {name: min(float(m) for triple in triples for m in of(code, *triple)) for name, of in conditions.items()}


def pair_margins(code: IdealCode) -> tuple[float, float]:
    """Of an image of two things with attributes: by how much its swap is nearer than an image with another object (in
    the swap's attributes), and by how much it is itself nearer than its swap. Every image has the same margins."""
    image, swap = code.of((0, 0, None), (1, 1, None)), code.of((0, 1, None), (1, 0, None))
    other = code.of((2, 1, None), (1, 0, None))
    return float(image @ swap - image @ other), float(1 - image @ swap)


def categorisation(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins of: what shares an object is nearer than what doesn't, whatever its attribute and place."""
    one, two, three = (code.of((thing, None, None)) for thing in (x, y, z))
    both = code.of((x, None, None), (y, None, None))
    yield 1 - one @ two
    yield both @ one - both @ three
    yield code.of((x, None, LEFT)) @ code.of((x, None, RIGHT)) - one @ two
    for a, b in permutations(range(code.attributes), 2):
        yield code.of((x, a, None)) @ code.of((x, b, None)) - one @ two


def attribute_binding(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins of: an object is nearer to its attribute than to another's, alone and beside another thing."""
    for a, b in permutations(range(code.attributes), 2):
        one, other = code.of((x, a, None)), code.of((x, b, None))
        scene, swap = code.of((x, a, None), (y, b, None)), code.of((x, b, None), (y, a, None))
        yield 1 - one @ other
        yield (one - other) @ code.attribute(a)
        yield 1 - scene @ swap
        yield scene @ (one - other)


def place(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins of: a scene is nearer to what stands in its place than to what doesn't."""
    scene, mirror = code.of((x, None, LEFT), (y, None, RIGHT)), code.of((x, None, RIGHT), (y, None, LEFT))
    yield 1 - scene @ mirror
    yield scene @ code.of((x, None, LEFT), (z, None, RIGHT)) - scene @ code.of((x, None, RIGHT), (z, None, LEFT))


def negation(code: IdealCode, x: int, y: int, z: int) -> Iterator[float]:
    """Yield the margins of: "no x" is nearer to what lacks x, and to other negations, than to x."""
    one, two = code.of((x, None, None)), code.of((y, None, None))
    yield one @ code.no(y) - one @ code.no(x)
    yield code.no(x) @ code.no(y) - one @ two
    yield two @ code.no(x) - one @ code.no(x)
