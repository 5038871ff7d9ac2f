"""Goldfish: a round body with big eyes, a forked fan of a tail, fins, faint scales."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((0.05, 0, 0), (0.52, 0.27, 0.36)),
    Ellipsoid((0.02, 0, -0.08), (0.42, 0.28, 0.32)),
    Capsules([(-0.25, 0, 0.02), (-0.62, 0, 0.06)], [0.22, 0.10], squash=(1, 0.7, 1)),
)
_FINS = (
    Capsules([(-0.55, 0.01, 0.1), (-0.9, 0.08, 0.3), (-1.2, 0.16, 0.42)], [0.09, 0.20, 0.12], 0.04, squash=(1, 0.2, 1)),
    Capsules(
        [(-0.55, 0.01, 0.02), (-0.9, 0.08, -0.18), (-1.2, 0.16, -0.42)], [0.09, 0.2, 0.12], 0.04, squash=(1, 0.2, 1)
    ),
    Capsules([(0.22, 0, 0.34), (0.0, 0, 0.50), (-0.30, 0, 0.42)], [0.05, 0.16, 0.08], 0.05, squash=(1, 0.24, 1)),
    Capsules([(0.18, 0, 0.4), (0.08, 0, 0.66)], [0.05, 0.04], 0.05, squash=(1, 0.4, 1)),
    Capsules(
        [(0.22, 0.22, -0.12), (0.08, 0.42, -0.22), (-0.08, 0.52, -0.26)], [0.05, 0.1, 0.05], 0.04, squash=(1, 0.4, 1)
    ),
    Capsules(
        [(0.1, 0.1, -0.34), (-0.05, 0.16, -0.52), (-0.15, 0.18, -0.6)], [0.05, 0.09, 0.05], 0.04, squash=(1, 0.4, 1)
    ),
    Capsules([(-0.3, 0.03, -0.22), (-0.5, 0.05, -0.4)], [0.05, 0.07], 0.04, squash=(1, 0.4, 1)),
)
_FACE = (
    Ellipsoid((0.56, 0, -0.02), (0.08, 0.09, 0.08), blend=0.04),
    Ellipsoid((0.60, 0, -0.02), (0.07, 0.035, 0.035), blend=0.02, carve=True),
    Ellipsoid((0.36, 0.2, 0.09), (0.10, 0.10, 0.10), blend=0.01, tag="eyeball"),
    Ellipsoid((0.385, 0.25, 0.095), (0.068, 0.068, 0.068), blend=0.0, tag="eye"),
    Ellipsoid((0.22, 0.30, -0.02), (0.035, 0.1, 0.26), blend=0.02, carve=True),  # the gill
)


def _paint(points):
    """Scales behind the gill."""
    x, _, z = points.T
    scales = (np.sin(x * 38) * np.sin(z * 38) > 0.25) & (np.abs(x + 0.16) < 0.34)
    return np.where(scales, np.float32(0.80), np.float32(1.0))


ANIMAL = Animal(_BODY + _FINS + _FACE, size=1.42, hover=0.16, floor=None, paint=_paint)
