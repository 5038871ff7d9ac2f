"""Rabbit: sitting, with long hollow ears, a round haunch, a bob of a tail, two front teeth."""

from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid

_BODY = (
    Ellipsoid((-0.18, 0, 0.44), (0.46, 0.35, 0.40)),
    Ellipsoid((0.18, 0, 0.46), (0.28, 0.26, 0.36), blend=0.1),
    Ellipsoid((-0.22, 0.26, 0.30), (0.31, 0.16, 0.28), (0, -15, 0), blend=0.05),
    Ellipsoid((-0.68, 0, 0.36), (0.17, 0.16, 0.17), blend=0.02),
    Capsules([(0.30, 0.13, 0.5), (0.36, 0.14, 0.2), (0.40, 0.14, 0.05)], [0.11, 0.085, 0.08], blend=0.05),
    Capsules([(0.40, 0.14, 0.05), (0.50, 0.14, 0.04)], [0.08, 0.07], blend=0.03),
    Capsules([(-0.28, 0.29, 0.07), (0.12, 0.30, 0.06)], [0.09, 0.08], blend=0.04),
)
_HEAD = (
    Ellipsoid((0.42, 0, 0.93), (0.26, 0.22, 0.22), (0, 15, 0), blend=0.1),
    Ellipsoid((0.58, 0, 0.86), (0.15, 0.14, 0.12), blend=0.06),
    Ellipsoid((0.54, 0.09, 0.83), (0.10, 0.09, 0.09), blend=0.05),
    Capsules(
        [(0.34, 0.09, 1.08), (0.24, 0.16, 1.35), (0.16, 0.23, 1.64)], [0.07, 0.13, 0.06], 0.04, squash=(0.5, 1, 1)
    ),
    Capsules(
        [(0.39, 0.095, 1.14), (0.30, 0.165, 1.35), (0.21, 0.23, 1.58)],
        [0.03, 0.08, 0.03],
        0.02,
        carve=True,
        squash=(0.45, 1, 1),
    ),
    Ellipsoid((0.715, 0, 0.895), (0.045, 0.05, 0.035), blend=0.01, tag="nose"),
    Ellipsoid((0.545, 0.170, 0.98), (0.058, 0.058, 0.058), blend=0, tag="eye"),
    Ellipsoid((0.66, 0, 0.77), (0.05, 0.015, 0.06), blend=0.01, carve=True),
    Capsules([(0.66, 0.03, 0.795), (0.685, 0.03, 0.73)], [0.026, 0.023], 0, "bone"),
)

ANIMAL = Animal(_BODY + _HEAD, size=1.56)
