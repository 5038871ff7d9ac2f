"""Pig: a round barrel on short trotters, a flat disc of a snout, big triangular ears, a curly tail."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((0, 0, 0.84), (0.88, 0.64, 0.66)),
    Ellipsoid((-0.36, 0, 0.88), (0.52, 0.60, 0.62)),
    Capsules([(0.44, 0.29, 0.55), (0.48, 0.32, 0.20), (0.50, 0.32, 0.02)], [0.24, 0.16, 0.17]),
    Capsules([(-0.50, 0.29, 0.60), (-0.56, 0.32, 0.24), (-0.52, 0.32, 0.02)], [0.28, 0.16, 0.17]),
)
_TAIL = Capsules(
    [
        (-0.76, 0, 1.02),
        *((-1.04 - 0.20 * np.sin(a), 0, 1.24 - 0.20 * np.cos(a)) for a in np.linspace(-0.6, 6.6, 14)),
        (-1.32, 0, 1.12),
    ],
    [0.085] * 15 + [0.06],
    blend=0.03,
)
_HEAD = (
    Ellipsoid((0.80, 0, 1.08), (0.46, 0.47, 0.48), blend=0.1),
    Ellipsoid((0.96, 0.18, 0.88), (0.28, 0.24, 0.23), blend=0.08),
    Capsules([(1.12, 0, 1.02), (1.42, 0, 1.00)], [0.27, 0.27], blend=0.06, squash=(0.7, 1, 1)),
    Ellipsoid((1.48, 0, 1.00), (0.09, 0.32, 0.29), (0, -6, 0), blend=0.02, tag="nose"),
    Ellipsoid((1.56, 0.12, 1.01), (0.08, 0.05, 0.08), blend=0.01, tag="eye"),
    Capsules(
        [(0.70, 0.30, 1.40), (0.80, 0.44, 1.72), (1.14, 0.54, 1.62)], [0.27, 0.20, 0.05], 0.03, squash=(1, 0.45, 1)
    ),
    Ellipsoid((1.10, 0.30, 1.26), (0.08, 0.08, 0.08), blend=0, tag="eye"),
)


def _paint(points):
    """Dark trotters."""
    return np.where(points[:, 2] < 0.15, np.float32(0.3), np.float32(1.0))


ANIMAL = Animal((*_BODY, _TAIL, *_HEAD), size=1.42, paint=_paint)
