"""Whether an animal fits its slots: inside the frame, and on its own side of a pair.

A plane between the two slots of a relation that no animal crosses proves that they never touch.
"""

import numpy as np

from envs.camera import Camera
from envs.raster import to_world
from envs.slots import SLOTS
from envs.stage import placed
from envs.view import view_of

VIEWS = 24
MARGIN = 1.0  # percent of the image's side
# Axis and position in metres of the plane that a slot keeps to, and on which side of it.
SIDES = {"left": (0, 0.0, -1), "right": (0, 0.0, 1), "under": (2, 1.40, -1), "above": (2, 1.40, 1)}


def misplaced(animal: str) -> str | None:
    """What is wrong with an animal in any slot and view; None if nothing is."""
    for slot in SLOTS:
        for view in range(VIEWS):
            mesh, pose = placed(animal, slot, view)
            points = to_world(mesh, pose, mesh.vertices)
            screen = Camera(100, view_of(view)).project(points)[:, :2]
            where = f"in slot {slot!r}, view {view}"
            if screen.min() < MARGIN or screen.max() > 100 - MARGIN:
                return f"{animal!r} is cut by the frame {where}"
            if slot in SIDES:
                axis, plane, side = SIDES[slot]
                if (side * (points[:, axis] - plane)).min() < 0:
                    over = np.abs(points[:, axis] - plane)[side * (points[:, axis] - plane) < 0].max()
                    return f"{animal!r} reaches {over:.2f} m over to the other thing's side {where}"
    return None
