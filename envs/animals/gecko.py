"""Gecko: a big flat smiling head with huge slit eyes, splayed legs with round toe pads, a fat tail in a curl."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid, fold

_TRUNK = (
    Capsules([(-0.5, 0, 0.32), (-0.1, 0, 0.42), (0.35, 0, 0.57)], [0.3, 0.39, 0.3], squash=(1, 1.1, 1)),
    Capsules([(-0.5, 0, 0.3), (-0.8, 0, 0.25), (-1.08, 0, 0.27), (-1.32, 0, 0.46)], [0.25, 0.22, 0.25, 0.25]),
    Capsules(
        [(-1.32, 0, 0.46), (-1.4, 0, 0.78), (-1.24, 0, 1.04), (-0.96, 0, 1.03), (-0.88, 0, 0.84)],
        [0.25, 0.21, 0.16, 0.11, 0.07],
        0.02,
    ),
)
_HEAD = (
    Ellipsoid((0.62, 0, 0.88), (0.44, 0.46, 0.33), (0, 6, 0), blend=0.06),
    Ellipsoid((1.0, 0, 0.83), (0.36, 0.34, 0.24), (0, 8, 0), blend=0.1),
    Capsules([(1.4, 0, 0.72), (1.2, 0.26, 0.68), (0.72, 0.46, 0.78)], [0.03, 0.045, 0.03], 0.02, carve=True),
    Ellipsoid((0.72, 0.31, 1.11), (0.23, 0.16, 0.23), blend=0.02, tag="beak"),
    Ellipsoid((0.75, 0.36, 1.12), (0.085, 0.13, 0.2), blend=0, tag="eye"),
)
_LEGS = (
    Capsules([(0.28, 0.22, 0.44), (0.22, 0.64, 0.5), (0.44, 0.78, 0.1)], [0.17, 0.14, 0.11], blend=0.04),
    Capsules([(-0.5, 0.2, 0.32), (-0.42, 0.66, 0.5), (-0.74, 0.78, 0.1)], [0.18, 0.15, 0.11], blend=0.04),
)
_TOES = tuple(
    Capsules([(x, 0.78, 0.09), (x + dx, 0.78 + dy, 0.1)], [0.065, 0.115], 0.01)
    for x in (0.44, -0.74)
    for dx, dy in ((0.42, -0.05), (0.22, 0.22), (-0.06, 0.28), (-0.32, 0.08))
)


def _paint(points):
    """Back and tail dark with bright rings; head and legs bright."""
    x, _, z = points.T
    folded = fold(points)
    back = np.min([part.distance(folded) for part in _TRUNK], 0) < 0.03
    limbs = np.min([part.distance(folded) for part in _LEGS + _HEAD], 0) < 0.03
    along = np.where(x < -1.07, np.arctan2(z - 0.7, -1.07 - x) - 1.57, x)
    dark = back & ~limbs & (z > 0.15) & (np.cos(11 * along) < 0.6)
    return np.where(dark, np.float32(0.36), np.float32(1.0))


ANIMAL = Animal(_TRUNK + _HEAD + _LEGS + _TOES, size=1.45, paint=_paint)
