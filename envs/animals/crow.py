"""Crow: a sleek bird on two legs, a heavy dark beak that caws, wings folded to a point, a wedge of a tail, a hood."""

import numpy as np

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid, fold

_BODY = (
    Ellipsoid((0, 0, 0.95), (0.60, 0.38, 0.42), (0, -36, 0)),
    Ellipsoid((0.22, 0, 1.06), (0.36, 0.34, 0.40), blend=0.1),
    Capsules([(0.06, 0.16, 0.72), (0.04, 0.2, 0.46)], [0.2, 0.11], blend=0.06),
)
_TAIL = tuple(
    Capsules([(-0.36, 0, 0.7), (-0.66, y, 0.48), (-0.88, 1.5 * y, 0.3)], [0.16, 0.14, 0.1], 0.02, squash=(1, 1, 0.6))
    for y in (0, 0.14)
)
_WING = (
    Capsules(
        [(0.32, 0.29, 1.12), (0, 0.35, 0.98), (-0.4, 0.28, 0.72), (-0.78, 0.13, 0.44)],
        [0.22, 0.29, 0.22, 0.04],
        0.02,
        squash=(1, 0.4, 1),
    ),
)
_HEAD = (
    Capsules([(0.32, 0, 1.2), (0.48, 0, 1.52)], [0.3, 0.26], blend=0.08),
    Ellipsoid((0.52, 0, 1.58), (0.30, 0.26, 0.27), blend=0.06),
)
_FACE = (
    Capsules([(0.68, 0, 1.62), (1.0, 0, 1.64), (1.24, 0, 1.52)], [0.17, 0.13, 0.04], 0.02, "eye", squash=(1, 0.8, 1)),
    Capsules([(0.68, 0, 1.48), (0.96, 0, 1.40), (1.12, 0, 1.34)], [0.13, 0.09, 0.05], 0.02, "eye", squash=(1, 0.8, 1)),
    Ellipsoid((0.62, 0.19, 1.69), (0.09, 0.07, 0.09), blend=0, tag="eyeball"),
    Ellipsoid((0.64, 0.235, 1.695), (0.055, 0.05, 0.055), blend=0, tag="eye"),
)
_LEGS = (
    Capsules([(0.04, 0.2, 0.5), (0.0, 0.21, 0.07)], [0.08, 0.075], 0, "eye"),
    *(
        Capsules([(0, 0.21, 0.06), (x, y, 0.04)], [0.08, 0.055], 0, "eye")
        for x, y in ((0.34, 0.08), (0.38, 0.23), (0.3, 0.38), (-0.24, 0.21))
    ),
)


def _paint(points):
    """Hood, wings and tail dark, the body bright: a hooded crow."""
    folded = fold(points)
    dark = np.min([part.distance(folded) for part in _HEAD + _WING + _TAIL], 0) < 0.02
    return np.where(dark, np.float32(0.36), np.float32(1.0))


ANIMAL = Animal(_BODY + _TAIL + _WING + _HEAD + _FACE + _LEGS, size=1.42, paint=_paint)
