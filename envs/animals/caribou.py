"""Caribou: huge branching antlers, a shaggy pale mane hanging from the neck, long legs, head held up."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((-0.02, 0, 0.94), (0.66, 0.30, 0.31)),
    Ellipsoid((0.38, 0, 0.98), (0.32, 0.29, 0.35)),
    Capsules([(0.42, 0.17, 0.85), (0.42, 0.18, 0.45), (0.44, 0.18, 0.03)], [0.16, 0.095, 0.12]),
    Capsules([(-0.48, 0.17, 0.88), (-0.56, 0.18, 0.47), (-0.50, 0.18, 0.03)], [0.20, 0.10, 0.12]),
    Capsules([(-0.60, 0, 1.10), (-0.75, 0, 1.08)], [0.11, 0.08], blend=0.04),
)
_HEAD = (
    Capsules([(0.42, 0, 1.04), (0.70, 0, 1.24), (0.86, 0, 1.46)], [0.27, 0.20, 0.16], blend=0.06),
    Capsules([(0.62, 0, 0.98), (0.78, 0, 0.80), (0.82, 0, 0.62)], [0.23, 0.16, 0.06], blend=0.04),
    Capsules([(0.76, 0, 1.18), (0.95, 0, 1.02), (1.00, 0, 0.88)], [0.18, 0.11, 0.05], blend=0.03),
    Capsules([(0.88, 0, 1.50), (1.10, 0, 1.42), (1.23, 0, 1.36)], [0.17, 0.13, 0.125], blend=0.06),
    Capsules([(0.82, 0.13, 1.53), (0.70, 0.34, 1.52)], [0.05, 0.06], blend=0.03),
    Ellipsoid((1.0, 0.135, 1.54), (0.055, 0.055, 0.055), blend=0, tag="eye"),
)
_ANTLERS = tuple(
    Capsules(points, radii, 0.03, "bone")
    for points, radii in (
        (
            [(0.84, 0.08, 1.60), (0.58, 0.30, 1.82), (0.40, 0.48, 2.12), (0.50, 0.52, 2.40), (0.72, 0.50, 2.56)],
            [0.085, 0.08, 0.08, 0.075, 0.055],
        ),
        ([(0.90, 0.08, 1.64), (1.12, 0.12, 1.74), (1.25, 0.12, 1.94)], [0.075, 0.08, 0.06]),
        ([(0.56, 0.32, 1.86), (0.84, 0.40, 1.98), (0.94, 0.42, 2.20)], [0.07, 0.065, 0.05]),
        ([(0.42, 0.46, 2.08), (0.14, 0.50, 2.24)], [0.07, 0.05]),
        ([(0.46, 0.52, 2.36), (0.30, 0.54, 2.58)], [0.07, 0.05]),
    )
)


def _paint(points):
    """Mane and rump pale, the coat dark."""
    x, _, z = points.T
    mane = (x > 0.42) & (z < 1.42) & (x + z > 1.35)
    return np.where(mane | (x < -0.64), np.float32(1.0), np.float32(0.6))


ANIMAL = Animal(_BODY + _HEAD + _ANTLERS, size=1.65, paint=_paint)
