"""Whether an animal fits its slots: inside the frame, and on its own side of a pair.

Checked at the extremes of every slot's bounds under every camera. If no animal crosses the plane
between the two slots of a relation, no two animals can touch.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from envs.drawing.camera import Camera
from envs.drawing.placement import Pose
from envs.drawing.poses import UPRIGHT, read_poses
from envs.drawing.raster import to_world
from envs.drawing.view import VIEWS
from envs.shapes.mesh import animal_mesh
from envs.slots import SLOTS, Slot

MARGIN = 1.0  # percent of the image's side
# Planes that bound a slot: axis, position in metres, and the side on which the slot lies.
LEFT, RIGHT, LOWER, UPPER = (0, 0.0, -1), (0, 0.0, 1), (2, 1.40, -1), (2, 1.40, 1)
SIDES = {
    "left": (LEFT,),
    "right": (RIGHT,),
    "under": (LOWER,),
    "above": (UPPER,),
    "lower left": (LOWER, LEFT),
    "lower right": (LOWER, RIGHT),
    "upper left": (UPPER, LEFT),
    "upper right": (UPPER, RIGHT),
}
CAMERAS = {view.camera: Camera(100, view) for view in VIEWS}.values()


def misplaced(name: str, animal) -> str | None:
    """The first slot in which `animal` doesn't fit, as a message; None if it fits all."""
    mesh, settled = animal_mesh(animal), read_poses().get(name, UPRIGHT)
    corners = hull(mesh.vertices)
    for slot, bounds in SLOTS.items():
        for pose in extremes(bounds, settled):
            points = to_world(mesh, pose, corners)
            screens = [camera.project(points)[:, :2] for camera in CAMERAS]
            if min(s.min() for s in screens) < MARGIN or max(s.max() for s in screens) > 100 - MARGIN:
                return f"{name!r} would be cut by the frame in slot {slot!r}"
            for axis, plane, side in SIDES.get(slot, ()):
                over = -(side * (points[:, axis] - plane)).min()
                if over > 0:
                    return f"{name!r} reaches {over:.2f} m over to the other thing's side from slot {slot!r}"
    return None


def hull(vertices: np.ndarray) -> np.ndarray:
    """The vertices of the convex hull: no other vertex can leave the frame first."""
    from scipy.spatial import ConvexHull

    return vertices[ConvexHull(vertices.astype(np.float64)).vertices]


def extremes(slot: Slot, settled) -> Iterator[Pose]:
    """Poses at the ends of a slot's bounds, at its greatest scale."""
    scale = slot.widest
    for yaw, turn, across, away in product(slot.yaws, (-1, -0.5, 0, 0.5, 1), (-1, 1), (-1, 1)):
        x, y, z = slot.position
        position = (x + across * slot.shift_range[0], y + away * slot.shift_range[1], z + settled.lift * scale)
        yield Pose(position, yaw + turn * slot.yaw_range, scale, settled)
