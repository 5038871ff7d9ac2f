"""Rhinoceros: a very large horn and a second one on a long low head, armour plates, stout legs."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((0, 0, 0.94), (0.78, 0.50, 0.54)),
    Ellipsoid((0.42, 0, 1.04), (0.42, 0.48, 0.56)),
    Ellipsoid((-0.52, 0, 1.00), (0.42, 0.48, 0.55)),
    Capsules([(0.48, 0.25, 0.75), (0.50, 0.28, 0.38), (0.51, 0.28, 0.02)], [0.26, 0.19, 0.21]),
    Capsules([(-0.56, 0.25, 0.80), (-0.60, 0.28, 0.40), (-0.58, 0.28, 0.02)], [0.29, 0.19, 0.21]),
    Capsules([(-0.90, 0, 1.14), (-1.02, 0, 0.82), (-1.00, 0, 0.58)], [0.07, 0.055, 0.08], blend=0.04),
)
_HEAD = (
    Capsules([(0.56, 0, 1.02), (0.96, 0, 0.90)], [0.42, 0.32], blend=0.1),
    Capsules([(1.02, 0, 0.92), (1.28, 0, 0.72), (1.50, 0, 0.56)], [0.29, 0.24, 0.21], blend=0.08),
    Ellipsoid((1.56, 0, 0.50), (0.18, 0.22, 0.18), blend=0.05),
    Capsules([(1.50, 0, 0.68), (1.76, 0, 1.02), (1.78, 0, 1.62)], [0.22, 0.16, 0.03], 0.03, "bone"),
    Capsules([(1.22, 0, 0.96), (1.34, 0, 1.14), (1.34, 0, 1.36)], [0.15, 0.11, 0.03], 0.03, "bone"),
    Capsules([(0.86, 0.20, 1.18), (0.80, 0.28, 1.50)], [0.14, 0.06], 0.03, squash=(0.6, 1, 1)),
    Ellipsoid((1.16, 0.255, 0.90), (0.07, 0.07, 0.07), blend=0, tag="eye"),
)


def _folds(points):
    """Nearness, 0..1, to the seams between the plates: behind the shoulder, before the haunch, over the legs."""
    x, _, z = points.T
    seams = np.minimum(np.abs(x - 0.07 - 0.12 * np.sin(4 * z)), np.abs(x + 0.27 + 0.10 * np.sin(3 * z)))
    skirts = np.where(np.abs(np.abs(x) - 0.54) < 0.27, np.abs(z - 0.50), 1)
    return np.exp(-((np.minimum(seams, skirts) / 0.05) ** 2)).astype(np.float32)


ANIMAL = Animal(
    _BODY + _HEAD,
    size=1.40,
    relief=lambda points: -0.045 * _folds(points),
    paint=lambda points: 1 - np.float32(0.7) * _folds(points),
)
