"""Bear: reared up on thick hind legs, shoulder hump, clawed arms held out, round ears, a long pale muzzle."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((-0.04, 0, 0.68), (0.54, 0.56, 0.54)),
    Ellipsoid((-0.04, 0, 1.10), (0.43, 0.50, 0.46), blend=0.15),
    Ellipsoid((-0.24, 0, 1.36), (0.34, 0.42, 0.32), blend=0.15),
    Ellipsoid((-0.60, 0, 0.52), (0.12, 0.12, 0.12), blend=0.03),
    Capsules([(0.0, 0.29, 0.5), (0.04, 0.35, 0.12)], [0.30, 0.22], blend=0.06),
    Capsules([(0.04, 0.35, 0.11), (0.34, 0.38, 0.09)], [0.21, 0.18], blend=0.04),
    Capsules([(-0.02, 0.40, 1.24), (0.30, 0.54, 0.94), (0.58, 0.47, 0.98)], [0.23, 0.19, 0.17], blend=0.05),
    Ellipsoid((0.67, 0.46, 1.03), (0.19, 0.17, 0.19), blend=0.03),
)
_HEAD = (
    Ellipsoid((0.16, 0, 1.68), (0.39, 0.43, 0.37), blend=0.1),
    Capsules([(0.42, 0, 1.60), (0.66, 0, 1.57)], [0.22, 0.17], blend=0.05),
    Ellipsoid((0.02, 0.36, 1.98), (0.10, 0.19, 0.19), blend=0.03),
    Ellipsoid((0.12, 0.37, 1.99), (0.07, 0.11, 0.11), blend=0.02, carve=True),
    Ellipsoid((0.80, 0, 1.66), (0.09, 0.12, 0.085), blend=0, tag="eye"),
    Ellipsoid((0.48, 0.22, 1.80), (0.07, 0.07, 0.07), blend=0, tag="eye"),
)
_CLAWS = (
    *(Capsules([(0.78, y, 1.09), (0.90, y, 0.98)], [0.05, 0.02], 0, "bone") for y in (0.36, 0.46, 0.56)),
    *(Capsules([(0.46, y, 0.09), (0.60, y, 0.04)], [0.05, 0.02], 0, "bone") for y in (0.28, 0.39, 0.50)),
)


def _paint(points):
    """The muzzle pale, the coat darker."""
    x, _, z = points.T
    return np.where((x > 0.53) & (z > 1.4), np.float32(1.0), np.float32(0.7))


ANIMAL = Animal(_BODY + _HEAD + _CLAWS, size=1.60, paint=_paint)
