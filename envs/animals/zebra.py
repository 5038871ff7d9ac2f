"""Zebra: a sturdy horse in wide dark stripes, an upright dark mane, a tasselled tail."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((0, 0, 0.98), (0.60, 0.34, 0.36)),
    Ellipsoid((-0.38, 0, 1.03), (0.33, 0.33, 0.36)),
    Capsules([(0.40, 0.18, 0.9), (0.40, 0.18, 0.45), (0.42, 0.18, 0.03)], [0.17, 0.11, 0.125]),
    Capsules([(-0.46, 0.18, 0.9), (-0.52, 0.18, 0.48), (-0.46, 0.18, 0.03)], [0.21, 0.115, 0.125]),
    Capsules([(-0.62, 0, 1.22), (-0.80, 0, 1.12), (-0.84, 0, 0.84)], [0.06, 0.055, 0.055], blend=0.04),
    Ellipsoid((-0.85, 0, 0.64), (0.11, 0.11, 0.22), blend=0.03),
)
_HEAD = (
    Capsules([(0.38, 0, 1.08), (0.62, 0, 1.42), (0.78, 0, 1.72)], [0.30, 0.19, 0.16]),
    Capsules([(0.82, 0, 1.74), (1.03, 0, 1.50), (1.15, 0, 1.33)], [0.185, 0.145, 0.14], blend=0.05),
    Capsules(
        [(0.30, 0, 1.46), (0.42, 0, 1.72), (0.56, 0, 1.90), (0.70, 0, 1.98)],
        [0.09, 0.12, 0.12, 0.10],
        0.01,
        squash=(1, 0.7, 1),
    ),
    Capsules([(0.82, 0.12, 1.86), (0.88, 0.19, 2.07)], [0.08, 0.05], blend=0.03),
    Ellipsoid((0.98, 0.140, 1.68), (0.055, 0.055, 0.055), blend=0, tag="eye"),
)


def _paint(points):
    """Bands across the trunk, the neck and the legs; mane, muzzle and tassel dark."""
    x, _, z = points.T
    mane = (x > 0.12) & (z > 1.40) & (0.54 * z - 0.84 * x > 0.50)
    ends = mane | (x + 0.5 * (1.4 - z) > 1.20) | ((x < -0.72) & (z < 0.82))
    along = np.where(z < 0.68, 1.15 * z, np.where(x + 0.5 * z > 1.0, 0.65 * x + z - 0.94, x - 0.02))
    return np.where(ends | (np.sin(along * 2 * np.pi / 0.35) > 0.2), np.float32(0.02), np.float32(1.0))


ANIMAL = Animal(_BODY + _HEAD, size=1.43, paint=_paint)
