"""Dolphin: a slim body arched in a leap, a long beak, a swept-back fin, a pale belly."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_SPINE = [
    (0.64, 0, 0.10),
    (0.38, 0, 0.25),
    (0.08, 0, 0.30),
    (-0.24, 0, 0.22),
    (-0.47, 0, 0.02),
    (-0.63, 0, -0.27),
    (-0.71, 0, -0.60),
]
_BODY = (
    Capsules(_SPINE, [0.25, 0.32, 0.34, 0.31, 0.25, 0.17, 0.11], squash=(1, 0.9, 1)),
    Ellipsoid((0.66, 0, 0.11), (0.29, 0.23, 0.25), (0, 25, 0), blend=0.1),
)
_FINS = (
    Capsules([(0.08, 0, 0.55), (-0.08, 0, 0.77), (-0.31, 0, 0.90)], [0.19, 0.12, 0.05], 0.08, squash=(1, 0.4, 1)),
    Capsules(
        [(0.38, 0.18, 0.04), (0.28, 0.38, -0.20), (0.08, 0.48, -0.40)], [0.12, 0.11, 0.06], 0.05, squash=(1, 0.5, 1)
    ),
    Capsules(
        [(-0.71, 0.03, -0.58), (-0.80, 0.27, -0.77), (-0.88, 0.56, -1.02)],
        [0.11, 0.17, 0.06],
        0.05,
        squash=(0.45, 1, 1),
    ),
)
_FACE = (
    Capsules([(0.84, 0, 0.02), (1.06, 0, -0.08), (1.27, 0, -0.17)], [0.13, 0.095, 0.07], 0.05),
    Capsules([(1.30, 0.07, -0.185), (1.02, 0.10, -0.075), (0.82, 0.22, -0.04)], [0.02, 0.02, 0.02], 0.01, carve=True),
    Ellipsoid((0.73, 0.20, 0.12), (0.055, 0.055, 0.055), blend=0, tag="eye"),
)


def _paint(points):
    """The back darker than the belly."""
    x, _, z = points.T
    return np.where(z < 0.2 - 0.45 * x * x, np.float32(1.0), np.float32(0.5))


ANIMAL = Animal(_BODY + _FINS + _FACE, size=1.36, hover=0.3, floor=None, paint=_paint)
