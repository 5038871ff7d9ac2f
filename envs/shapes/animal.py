"""The definition of an animal: a body of parts, its size, and the paint and relief of its skin."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.shapes.sdf import Part, fold

# Tagged parts keep their own colour whatever the texture: linear red, green, blue.
TAG_COLORS: dict[str, tuple[float, float, float]] = {
    "skin": (0.0, 0.0, 0.0),
    "eye": (0.012, 0.010, 0.010),
    "bone": (0.85, 0.80, 0.68),
    "beak": (0.85, 0.36, 0.04),
    "eyeball": (0.90, 0.90, 0.90),
    "nose": (0.45, 0.16, 0.16),
}
TAGS = tuple(TAG_COLORS)

PointFunction = Callable[[Float32[np.ndarray, "n 3"]], Float32[np.ndarray, " n"]]


@dataclass(frozen=True, eq=False)
class Animal:
    """A body in any units, scaled so that its longest side measures `size` metres.

    `relief` gives how far the surface is raised, in body units; `paint` gives a factor in 0..1 that darkens the
    texture. Both are functions of points in body coordinates.
    """

    parts: tuple[Part, ...]
    size: float
    hover: float = 0.0  # metres between the ground and the lowest point
    floor: float | None = 0.0  # body height at which the feet are cut flat
    relief: PointFunction | None = None
    paint: PointFunction | None = None

    def tags(self, points: Float32[np.ndarray, "n 3"], margin: float) -> UInt8[np.ndarray, " n"]:
        """Return for each surface point the index into `TAGS` of the nearest tagged part within `margin`, or 0 (skin)
        if there is none."""
        points = fold(points)
        nearest = np.full(len(points), margin, np.float32)
        tags = np.zeros(len(points), np.uint8)
        for part in self.parts:
            if part.tag != "skin":
                distance = part.distance(points)
                closer = distance < nearest
                tags[closer] = TAGS.index(part.tag)
                nearest[closer] = distance[closer]
        return tags
