"""Limits on an animal in scenes of many things: it is inside the frame, clear of its neighbours, wide enough to be
seen, and inside the sun's depth map, beyond which its shadow would be cut off.

All built-in animals keep these limits. A user's animal needn't, as it may be used in pairs alone; `menagerie
check-renderer --layout` reports those that don't. Limits are measured as in `menagerie.envs.custom.limits`.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32

from menagerie.envs.custom.limits import (
    ACROSS,
    CAMERAS,
    MARGIN,
    Measure,
    at,
    extremes,
    frame_gap,
    hull,
    outermost,
    settled_of,
    stand_of,
)
from menagerie.envs.drawing.camera import VIEWS, Camera, view_of
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.raster import to_world
from menagerie.envs.drawing.shadows import SOFTNESS, TEXELS, light_space
from menagerie.envs.shapes.mesh import animal_mesh
from menagerie.envs.slots import CROWD, SLOTS

LEAST_WIDTH = 12.0  # percent of the image's side, in views 0 to 11
# Planes between rows, y in metres: no two things of different rows touch. High things float behind the front row.
ROWS = {"front": (-np.inf, -0.51), "near": (-0.51, 0.67), "high": (-0.51, np.inf), "back": (0.67, np.inf)}
SUNS = {view.light: view.sun for view in VIEWS}.values()


def neighbours(place: str) -> Iterator[float]:
    """Yield the x in metres of planes half-way to each place of the same row that a layout combines with `place`."""
    x, row = SLOTS[place].position[0], CROWD[place].row
    for other, where in CROWD.items():
        apart = abs(SLOTS[other].position[0] - x)
        if where.row == row and other != place and apart > 1:
            yield (x + SLOTS[other].position[0]) / 2


def crowd_measures(name: str, animal) -> list[Measure]:
    """Return the limits on an animal in the places of crowds, each with the animal's value."""
    mesh, settled, stand = animal_mesh(animal), settled_of(name, animal), stand_of(animal)
    corners, frame, clear, lit = hull(mesh), [], [], []
    for place in CROWD:
        poses = [stand(pose) if stand else pose for pose in extremes(SLOTS[place], settled)]
        points = np.concatenate([to_world(mesh, pose, corners) for pose in poses])
        frame += [frame_gap(camera.project(points), place) for camera in CAMERAS]
        clear.append((clearance(points, place), f"slot {place!r}", ACROSS))
        lit.append((in_sun(points), f"slot {place!r}", ACROSS))
    return [
        Measure("in crowds, distance to the frame", *at(min(frame), "% of the image", MARGIN)),
        Measure("in crowds, distance to neighbours", *at(min(clear), "m", 0.0)),
        Measure("in crowds, distance to the sun's map", *at(min(lit), "texels", 0.0)),
        Measure("in crowds, least width", *at(min(widths(name, animal)), "% of the image", LEAST_WIDTH)),
    ]


def clearance(points: Float32[np.ndarray, "n 3"], place: str) -> float:
    """Return the least distance in metres of points to the planes that bound a place; it is negative beyond a plane."""
    (front, back), x = ROWS[CROWD[place].row], SLOTS[place].position[0]
    gaps = [points[:, 1].min() - front, back - points[:, 1].max()]
    for plane in neighbours(place):
        gaps.append(((points[:, 0] - plane) * np.sign(x - plane)).min())
    return float(min(gaps))


def in_sun(points: Float32[np.ndarray, "n 3"]) -> float:
    """Return the least distance of points to the border of the sun's depth map, in texels, over all suns. The width of
    a soft edge is subtracted."""
    across = np.concatenate([light_space(points, sun)[:, :2] for sun in SUNS])
    return float(min(across.min(), TEXELS - across.max())) - SOFTNESS


def widths(name: str, animal) -> Iterator[tuple[float, str, str]]:
    """Yield an animal's width on the image, in percent, in each place and view; of a cut-out, the longer side."""
    for place in CROWD:
        for view in range(12):
            screen = Camera(100, view_of(view)).project(outermost(name, animal, place, view))
            width, height = (float(side) for side in np.ptp(screen[:, :2], axis=0))
            shown = max(width, height) if isinstance(animal, Cutout) else width
            yield shown, f"slot {place!r}, view {view}", ACROSS
