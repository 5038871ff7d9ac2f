"""Where a thing stands in a view: its settled pose in a slot, varied within the slot's bounds."""

import zlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from menagerie.envs.core.errors import choose
from menagerie.envs.drawing.poses import UPRIGHT, Settled, read_poses, rotation
from menagerie.envs.slots import SLOTS, size_factor


@dataclass(frozen=True)
class Pose:
    """Position in metres, yaw in degrees, scale as a factor, and the tilt in which it rests."""

    position: tuple[float, float, float]
    yaw: float
    scale: float
    settled: Settled = UPRIGHT

    @property
    def rotation(self) -> Float32[np.ndarray, "3 3"]:
        """Matrix that turns column vectors by the tilt, then by the yaw about z."""
        c, s = np.cos(np.radians(self.yaw)), np.sin(np.radians(self.yaw))
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], np.float32) @ rotation(self.settled)


def place(animal: str, slot: str, view: int, size: str = "") -> Pose:
    """The pose of `animal` in `slot` in view number `view`; the same for every scene.

    A size changes only the scale, about the point on which the animal stands or above which it floats.
    """
    bounds = SLOTS[choose("slot", slot, SLOTS)]
    random = np.random.default_rng(zlib.crc32(f"{animal}|{slot}|{view}".encode()))
    turn, right, away, grow = random.uniform(-1, 1, 4)
    yaw = bounds.yaws[random.integers(len(bounds.yaws))]
    x, y, z = bounds.position
    shift_x, shift_y = bounds.shift_range
    scale = bounds.scale * (1 + grow * bounds.scale_range) * size_factor(size)
    settled = read_poses().get(animal, UPRIGHT)
    return Pose(
        (x + right * shift_x, y + away * shift_y, z + settled.lift * scale),
        yaw + turn * bounds.yaw_range,
        scale,
        settled,
    )
