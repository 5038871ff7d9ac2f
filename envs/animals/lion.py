"""Lion: a huge dark mane of locks around a broad muzzle, a slim body, a raised tail with a tuft."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid, fold

_BODY = (
    Capsules([(0.35, 0, 0.90), (-0.12, 0, 0.88), (-0.48, 0, 0.92)], [0.34, 0.27, 0.31]),
    Capsules(
        [(0.36, 0.18, 0.75), (0.38, 0.22, 0.4), (0.38, 0.22, 0.09), (0.54, 0.23, 0.08)], [0.22, 0.16, 0.145, 0.14]
    ),
    Capsules(
        [(-0.48, 0.16, 0.88), (-0.38, 0.22, 0.58), (-0.57, 0.22, 0.36), (-0.53, 0.22, 0.09)], [0.27, 0.20, 0.145, 0.14]
    ),
    Capsules([(-0.53, 0.22, 0.09), (-0.37, 0.23, 0.08)], [0.14, 0.14], blend=0.03),
    Capsules(
        [(-0.64, 0, 1.04), (-0.80, 0, 1.00), (-0.88, 0, 1.12), (-0.87, 0, 1.32), (-0.80, 0, 1.50)],
        [0.10, 0.09, 0.085, 0.08, 0.07],
        blend=0.04,
    ),
    Ellipsoid((-0.72, 0, 1.66), (0.17, 0.17, 0.25), (0, 30, 0), blend=0.02),
)
_MANE = (
    Ellipsoid((0.54, 0, 1.20), (0.27, 0.62, 0.66), (0, -8, 0), blend=0.06),
    Ellipsoid((0.38, 0, 1.02), (0.30, 0.46, 0.56), blend=0.06),
    Capsules([(0.64, 0, 0.80), (0.60, 0, 0.50)], [0.28, 0.10], blend=0.1),
)
_EAR = Ellipsoid((0.70, 0.40, 1.65), (0.08, 0.15, 0.15), blend=0.02)
_HEAD = (
    Ellipsoid((0.84, 0, 1.25), (0.28, 0.36, 0.36), blend=0.02),
    Capsules([(0.96, 0, 1.22), (1.16, 0, 1.16)], [0.15, 0.14], blend=0.04, squash=(1, 1.3, 1)),
    Ellipsoid((1.13, 0.09, 1.06), (0.15, 0.15, 0.12), blend=0.03),
    Ellipsoid((1.10, 0, 0.94), (0.11, 0.14, 0.09), blend=0.03),
    _EAR,
    Ellipsoid((1.27, 0, 1.20), (0.06, 0.13, 0.075), blend=0, tag="eye"),
    Ellipsoid((1.07, 0.21, 1.39), (0.07, 0.07, 0.07), blend=0, tag="eye"),
)


def _mane(points):
    """Whether points lie in the mane: behind and around the face, above the legs, without the ears."""
    points = fold(points)
    x, y, z = points.T
    mane = (Ellipsoid((0.60, 0, 1.08), (0.55, 0.78, 0.84)).distance(points) < 0) & ((z > 0.54) | (x > 0.58))
    face = (x > 0.74) & ((y / 0.37) ** 2 + ((z - 1.22) / 0.40) ** 2 < 1)
    return mane & ~face & (_EAR.distance(points) > 0.035)


def _locks(points):
    """Relief of the mane: locks that run back from the face."""
    angle = np.arctan2(points[:, 1], points[:, 2] - 1.14)
    return np.where(_mane(points), 0.07 * np.abs(np.cos(9.5 * angle)) - 0.02, 0).astype(np.float32)


def _paint(points):
    """Mane and tuft dark."""
    tuft = (points[:, 0] < -0.4) & (points[:, 2] > 1.47)
    return np.where(_mane(points) | tuft, np.float32(0.2), np.float32(1.0))


ANIMAL = Animal(_BODY + _MANE + _HEAD, size=1.40, relief=_locks, paint=_paint)
