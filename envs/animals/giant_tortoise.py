"""Giant tortoise: a domed shell of scutes, pillar legs, a long raised neck."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_SHELL = (
    Ellipsoid((0, 0, 0.44), (0.80, 0.62, 0.64), power=2.2),
    Ellipsoid((0, 0, 0.10), (1.2, 1.2, 0.33), blend=0.03, carve=True),
    Ellipsoid((0, 0, 0.46), (0.86, 0.68, 0.085), blend=0.03),
    Ellipsoid((0, 0, 0.40), (0.66, 0.5, 0.14), blend=0.05),
)
_LIMBS = (
    Capsules([(0.50, 0.38, 0.36), (0.66, 0.50, 0.2), (0.66, 0.52, 0.0)], [0.18, 0.16, 0.17]),
    Capsules([(-0.52, 0.38, 0.36), (-0.64, 0.48, 0.2), (-0.64, 0.48, 0.0)], [0.18, 0.16, 0.17]),
    Capsules([(-0.74, 0, 0.38), (-0.95, 0, 0.22)], [0.09, 0.03]),
)
_HEAD = (
    Capsules([(0.62, 0, 0.45), (0.92, 0, 0.60), (1.04, 0, 0.90)], [0.16, 0.125, 0.12], blend=0.05),
    Ellipsoid((1.13, 0, 0.98), (0.22, 0.145, 0.145), blend=0.06),
    Ellipsoid((1.27, 0, 0.94), (0.10, 0.10, 0.09), blend=0.04),
    Ellipsoid((1.21, 0.115, 1.02), (0.045, 0.045, 0.045), blend=0, tag="eye"),
)


def _scutes(points):
    """Relief of the shell's plates: one on top, then rings of 8 and 14, with grooves between."""
    x, y, z = points.T
    elevation = np.arctan2(z - 0.42, np.sqrt(0.6 * x * x + y * y))
    ring = np.where(elevation > 1.05, 0, np.where(elevation > 0.52, 1, 2))
    plates = np.array([1, 8, 14])[ring]
    across = np.abs((np.arctan2(y, 0.78 * x) / (2 * np.pi) * plates) % 1 - 0.5) * 2
    beside = np.where(ring == 0, 0, np.exp(-2 * ((1 - across) * 18 / plates) ** 2))
    between = np.exp(-((np.minimum(np.abs(elevation - 1.05), np.abs(elevation - 0.52)) * 14) ** 2))
    on_shell = (z > 0.50) & ((x / 0.86) ** 2 + (y / 0.68) ** 2 < 1)
    return np.where(on_shell, 0.030 * (1 - np.maximum(beside, between)) - 0.014, 0).astype(np.float32)


def _paint(points):
    return np.where(_scutes(points) < -0.003, np.float32(0.40), np.float32(1.0))


ANIMAL = Animal(_SHELL + _LIMBS + _HEAD, size=1.50, relief=_scutes, paint=_paint)
