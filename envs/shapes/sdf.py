"""Bodies as signed distance fields: ellipsoids and capsule chains, joined and carved smoothly.

Body coordinates: x forward, y left, z up. A body is mirrored in y: parts are given for its
left side and the middle. Distances are negative inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from menagerie.envs.shapes.vectors import dot, rotation, transform

FAR = np.float32(9.0)  # larger than any body, in body units


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """An ellipsoid; `power` above 2 makes it boxier."""

    center: tuple[float, float, float]
    radii: tuple[float, float, float]
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)  # yaw, pitch, roll in degrees
    blend: float = 0.08  # width of the smooth joint
    tag: str = "skin"
    carve: bool = False
    power: float = 2.0

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a box that holds the part."""
        half = np.sqrt(((rotation(*self.rotation) * np.asarray(self.radii)) ** 2).sum(1))
        half = half * (1.0 if self.power == 2 else 1.3)
        return np.asarray(self.center) - half, np.asarray(self.center) + half

    def distance(self, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
        """Signed distance (an estimate, of first order if `power` is 2) of points in body coordinates."""
        radii = np.asarray(self.radii, np.float32)
        offset = points - np.asarray(self.center, np.float32)
        if any(self.rotation):
            offset = transform(rotation(*self.rotation).T, offset)
        unit = offset / radii
        if self.power != 2:
            return ((np.abs(unit) ** np.float32(self.power)).sum(-1) ** np.float32(1 / self.power) - 1) * radii.min()
        steep = unit / radii
        length, slope = np.sqrt(dot(unit, unit)), np.sqrt(dot(steep, steep))
        return length * (length - 1) / np.maximum(slope, np.float32(1e-6))


@dataclass(frozen=True, eq=False)
class Capsules:
    """A chain of tapered capsules through `points`; `squash` scales the radii along each axis."""

    points: Sequence[tuple[float, float, float]]
    radii: Sequence[float]
    blend: float = 0.08
    tag: str = "skin"
    carve: bool = False
    squash: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a box that holds the part."""
        points, margin = np.asarray(self.points), np.outer(self.radii, self.squash)
        return (points - margin).min(0), (points + margin).max(0)

    def distance(self, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
        """Signed distance (an estimate) of points in body coordinates."""
        squash = np.asarray(self.squash, np.float32)
        joints, radii = np.asarray(self.points, np.float32) / squash, np.asarray(self.radii, np.float32)
        points = points / squash
        nearest = np.full(points.shape[:-1], FAR, np.float32)
        for start, end, first, last in zip(joints, joints[1:], radii, radii[1:], strict=False):
            bone, offset = end - start, points - start
            along = np.clip(dot(offset, bone) / max(dot(bone, bone), np.float32(1e-9)), 0, 1)
            side = offset - along[..., None] * bone
            np.minimum(nearest, np.sqrt(dot(side, side)) - (first + (last - first) * along), out=nearest)
        return nearest * squash.min()


Part = Ellipsoid | Capsules


def smooth_min(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    """Minimum of two fields, rounded where they are within `width` of each other."""
    if width <= 0:
        return np.minimum(a, b)
    overlap = np.maximum(np.float32(width) - np.abs(a - b), 0) / np.float32(width)
    return np.minimum(a, b) - overlap * overlap * np.float32(width / 4)


def join_part(field: np.ndarray, part: Part, distance: np.ndarray) -> np.ndarray:
    """Add `part`, whose distances are given, to a field, or carve it out of the field."""
    if part.carve:
        return -smooth_min(-field, distance, part.blend)
    return smooth_min(field, distance, part.blend)


def fold(points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Fold points onto the left side, for which the parts are given."""
    folded = points.copy()
    folded[..., 1] = np.abs(folded[..., 1])
    return folded


def body_distance(parts: Sequence[Part], points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
    """Return the signed distance of points to a whole body without its relief."""
    points = fold(points)
    field = np.full(points.shape[:-1], FAR, np.float32)
    for part in parts:
        field = join_part(field, part, part.distance(points))
    return field
