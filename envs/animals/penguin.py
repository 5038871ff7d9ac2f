"""Penguin: an upright bottle with flippers, an orange beak and feet, a pale belly."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Capsules([(0, 0, 0.42), (0.02, 0, 0.8), (0, 0, 1.12)], [0.40, 0.37, 0.25], blend=0.1),
    Ellipsoid((0.08, 0, 0.62), (0.40, 0.40, 0.48)),
    Capsules([(-0.3, 0, 0.2), (-0.55, 0, 0.04)], [0.13, 0.05], squash=(1, 1.2, 0.6)),
    Capsules(
        [(0, 0.30, 1.12), (-0.03, 0.52, 0.85), (-0.04, 0.68, 0.5)], [0.08, 0.12, 0.04], 0.05, squash=(1.3, 0.5, 1)
    ),
)
_HEAD = (
    Ellipsoid((0.05, 0, 1.42), (0.23, 0.21, 0.22), blend=0.12),
    Capsules([(0.2, 0, 1.43), (0.38, 0, 1.42), (0.54, 0, 1.35)], [0.085, 0.055, 0.018], 0.03, "beak"),
    Ellipsoid((0.20, 0.145, 1.49), (0.042, 0.042, 0.042), blend=0, tag="eye"),
)
_FEET = tuple(
    Capsules(
        [
            (0.08, 0.19, 0.06),
            toe,
        ],
        [0.08, 0.065],
        0.03,
        "beak",
        squash=(1, 1, 0.8),
    )
    for toe in ((0.38, 0.30, 0.03), (0.44, 0.18, 0.03), (0.38, 0.06, 0.03))
)


def _paint(points):
    """Belly and cheeks bright, the coat dark."""
    x, y, z = points.T
    belly = (x > 0.12) & (z < 1.22) & (np.abs(y) < 0.36 - 0.14 * (z - 0.8) ** 2)
    cheek = (((x - 0.06) / 0.085) ** 2 + ((z - 1.38) / 0.12) ** 2 < 1) & (np.abs(y) > 0.1)
    return np.where(belly | cheek, np.float32(1.0), np.float32(0.34))


ANIMAL = Animal(_BODY + _HEAD + _FEET, size=1.62, paint=_paint)
