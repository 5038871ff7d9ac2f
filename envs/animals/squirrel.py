"""Squirrel: sitting up with an acorn in its paws, tufted ears, an enormous bushy S of a tail behind its back."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Capsules([(-0.05, 0, 0.36), (0.06, 0, 0.72), (0.14, 0, 0.98)], [0.35, 0.29, 0.2]),
    Ellipsoid((0.02, 0.24, 0.3), (0.32, 0.16, 0.28), (0, 20, 0), blend=0.05),
    Capsules([(0.02, 0.27, 0.07), (0.46, 0.27, 0.06)], [0.1, 0.09], blend=0.04),
    Capsules([(0.14, 0.22, 0.84), (0.3, 0.27, 0.62), (0.5, 0.12, 0.72)], [0.11, 0.09, 0.08], blend=0.04),
)
_TAIL = Capsules(
    [(-0.24, 0, 0.16), (-0.52, 0, 0.28), (-0.62, 0, 0.7), (-0.46, 0, 1.15), (-0.54, 0, 1.5), (-0.86, 0, 1.52)],
    [0.14, 0.2, 0.28, 0.29, 0.27, 0.2],
    0.02,
    squash=(1, 0.8, 1),
)
_HEAD = (
    Ellipsoid((0.26, 0, 1.22), (0.27, 0.24, 0.24), blend=0.08),
    Ellipsoid((0.46, 0, 1.15), (0.17, 0.14, 0.13), blend=0.06),
    Ellipsoid((0.34, 0.13, 1.1), (0.15, 0.12, 0.12), blend=0.05),
    Capsules([(0.2, 0.14, 1.38), (0.16, 0.18, 1.56), (0.12, 0.2, 1.76)], [0.13, 0.1, 0.04], 0.03, squash=(1, 0.7, 1)),
    Ellipsoid((0.62, 0, 1.19), (0.05, 0.05, 0.04), blend=0.01, tag="nose"),
    Ellipsoid((0.37, 0.175, 1.27), (0.085, 0.07, 0.085), blend=0, tag="eyeball"),
    Ellipsoid((0.38, 0.205, 1.27), (0.07, 0.06, 0.07), blend=0, tag="eye"),
)
_ACORN = (
    Ellipsoid((0.59, 0, 0.77), (0.16, 0.16, 0.2), blend=0, tag="beak"),
    Ellipsoid((0.59, 0, 0.92), (0.175, 0.175, 0.07), blend=0, tag="eye"),
    Capsules([(0.59, 0, 0.95), (0.56, 0, 1.03)], [0.04, 0.035], 0, "eye"),
)


def _bushy(points):
    """Whether each point is on the tail."""
    return _TAIL.distance(points) < 0.04


def _fur(points):
    """Relief of the tail's tufts."""
    x, y, z = points.T
    return np.where(_bushy(points), 0.03 * np.sin(14 * z + 9 * x) * np.cos(12 * y), 0).astype(np.float32)


def _paint(points):
    """Breast and muzzle bright, the back darker, tail and ear tufts darkest."""
    x, y, z = points.T
    breast = (x > 0.06 + 0.2 * z) & (np.abs(y) < 0.24) & (z > 0.15) & (z < 1.1)
    return np.where(_bushy(points) | (z > 1.57), 0.4, np.where(breast, 1.0, 0.75)).astype(np.float32)


ANIMAL = Animal((*_BODY, _TAIL, *_HEAD, *_ACORN), size=1.36, relief=_fur, paint=_paint)
