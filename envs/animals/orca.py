"""Orca: stout and blunt, a tall straight fin, paddle flippers, white patches on a dark coat."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((0.12, 0, 0), (0.84, 0.48, 0.50)),
    Ellipsoid((0.62, 0, 0.01), (0.42, 0.40, 0.42), blend=0.15),
    Capsules([(-0.3, 0, 0.02), (-0.65, 0, 0.06), (-0.92, 0, 0.22)], [0.40, 0.26, 0.13], blend=0.15),
)
_FINS = (
    Capsules([(0.04, 0, 0.40), (-0.06, 0, 0.80), (-0.15, 0, 1.22)], [0.36, 0.21, 0.06], 0.08, squash=(1, 0.3, 1)),
    Capsules(
        [(0.46, 0.34, -0.20), (0.34, 0.60, -0.42), (0.18, 0.74, -0.60)], [0.14, 0.20, 0.16], 0.05, squash=(1, 0.6, 1)
    ),
    Capsules(
        [(-0.90, 0.03, 0.22), (-1.02, 0.30, 0.38), (-1.16, 0.60, 0.48)], [0.13, 0.20, 0.08], 0.05, squash=(1, 1, 0.45)
    ),
)
_FACE = (
    Ellipsoid((0.60, 0.32, 0.18), (0.26, 0.10, 0.135), (-12, 10, -28), blend=0.02, tag="eyeball"),
    Ellipsoid((0.90, 0.30, -0.01), (0.055, 0.055, 0.055), blend=0, tag="eye"),
)


def _paint(points):
    """White on the belly and up the flank; the rest dark."""
    x, y, z = points.T
    belly = (z < -0.05 - 0.06 * x) & (x > -0.75) & (np.abs(y) < 0.5)
    flank = ((x + 0.40) / 0.36) ** 2 + ((z - 0.06 + 0.5 * (x + 0.40)) / 0.18) ** 2 < 1
    return np.where(belly | flank, np.float32(1.0), np.float32(0.28))


ANIMAL = Animal(_BODY + _FINS + _FACE, size=1.31, hover=0.16, floor=None, paint=_paint)
