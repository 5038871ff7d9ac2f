"""The pose of an object in a view: in its slot, varied within the slot's bounds, at rest on the ground.

The table of settled poses is computed by `menagerie.envs.checks.physics`.
"""

import json
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.core.errors import choose
from menagerie.envs.core.files import write_text
from menagerie.envs.shapes.vectors import rotation
from menagerie.envs.slots import SLOTS, size_factor

TABLE = Path(__file__).parent / "poses.json"


class RestPose(NamedTuple):
    """The pose in which an animal rests: tilt in degrees about the body's x and y axes, and height of its origin in
    metres."""

    roll: float = 0.0
    pitch: float = 0.0
    lift: float = 0.0

    @property
    def rotation(self) -> Float32[np.ndarray, "3 3"]:
        """Matrix of the tilt: first about x, then about y."""
        return rotation(0.0, self.pitch, self.roll)


UPRIGHT = RestPose()


@lru_cache(maxsize=1)
def read_poses() -> dict[str, RestPose]:
    """Read the settled poses by animal; an animal that isn't in the table stands as it was modelled."""
    return {name: RestPose(*values) for name, values in json.loads(TABLE.read_text()).items()}


def write_poses(poses: dict[str, RestPose]) -> None:
    """Write the table, sorted by name."""
    lines = [f"  {json.dumps(name)}: {json.dumps(list(pose))}" for name, pose in sorted(poses.items())]
    write_text(TABLE, "{\n" + ",\n".join(lines) + "\n}\n")
    read_poses.cache_clear()


@dataclass(frozen=True)
class Pose:
    """Position in metres, yaw in degrees, scale as a factor, and the tilt in which it rests."""

    position: tuple[float, float, float]
    yaw: float
    scale: float
    settled: RestPose = UPRIGHT

    @property
    def rotation(self) -> Float32[np.ndarray, "3 3"]:
        """Matrix that turns column vectors by the tilt, then by the yaw about z."""
        c, s = np.cos(np.radians(self.yaw)), np.sin(np.radians(self.yaw))
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], np.float32) @ self.settled.rotation


def pose_in_slot(animal: str, slot: str, view: int, size: str = "") -> Pose:
    """Return the pose of `animal` in `slot` in view number `view`, which is the same for every scene.

    A size changes the scale, which lifts a tilted animal, too. The point on which the animal stands, or above which it
    floats, stays the same.
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
