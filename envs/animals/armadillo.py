"""Armadillo: a long banded dome, a pointed head with upright ears, a ringed tapering tail."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_SHELL = (
    Ellipsoid((0, 0, 0.46), (0.86, 0.62, 0.80), power=2.3),
    Ellipsoid((0, 0, 0.02), (1.2, 1.2, 0.26), blend=0.04, carve=True),
    Ellipsoid((0, 0, 0.42), (0.70, 0.48, 0.26), blend=0.04),
)
_LIMBS = (
    Capsules([(0.46, 0.32, 0.36), (0.52, 0.36, 0.14), (0.58, 0.37, 0.02)], [0.20, 0.15, 0.14], blend=0.04),
    Capsules([(-0.48, 0.32, 0.36), (-0.52, 0.36, 0.14), (-0.46, 0.37, 0.02)], [0.20, 0.15, 0.14], blend=0.04),
    Capsules(
        [(-0.66, 0, 0.58), (-0.98, 0, 0.30), (-1.20, 0, 0.17), (-1.42, 0, 0.28)], [0.30, 0.22, 0.15, 0.07], blend=0.04
    ),
)
_HEAD = (
    Ellipsoid((0.98, 0, 0.60), (0.34, 0.25, 0.27), (0, 25, 0), blend=0.05),
    Capsules([(1.12, 0, 0.52), (1.45, 0, 0.20)], [0.20, 0.075], blend=0.06),
    Capsules(
        [(0.92, 0.13, 0.80), (0.88, 0.19, 1.08), (0.86, 0.22, 1.26)], [0.08, 0.15, 0.08], 0.03, squash=(0.5, 1, 1)
    ),
    Ellipsoid((1.17, 0.19, 0.62), (0.06, 0.06, 0.06), blend=0, tag="eye"),
)


def _grooves(points):
    """Nearness, 0..1, to the grooves between the bands of the shell and the rings of the tail."""
    x, _, z = points.T
    shell = (np.abs(x) < 0.66) & (z > 0.27)
    groove = np.abs((x / 0.28) % 1 - 0.5) * 0.28
    return np.where(shell | (x < -0.88), np.exp(-((groove / 0.065) ** 2)), 0).astype(np.float32)


ANIMAL = Animal(
    _SHELL + _LIMBS + _HEAD,
    size=1.50,
    relief=lambda points: -0.055 * _grooves(points),
    paint=lambda points: 1 - np.float32(0.8) * _grooves(points),
)
