"""The table of settled poses: how each animal rests on the ground, computed by `menagerie.envs.checks.physics`."""

import json
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.core.files import write_text

TABLE = Path(__file__).parent / "poses.json"


class Settled(NamedTuple):
    """Tilt in degrees about the body's x and y axes, and height of its origin in metres."""

    roll: float = 0.0
    pitch: float = 0.0
    lift: float = 0.0


UPRIGHT = Settled()


@lru_cache(maxsize=1)
def read_poses() -> dict[str, Settled]:
    """Poses by animal; an animal that is not in the table stands as it was modelled."""
    return {name: Settled(*values) for name, values in json.loads(TABLE.read_text()).items()}


def write_poses(poses: dict[str, Settled]) -> None:
    """Write the table, sorted by name."""
    lines = [f"  {json.dumps(name)}: {json.dumps(list(pose))}" for name, pose in sorted(poses.items())]
    write_text(TABLE, "{\n" + ",\n".join(lines) + "\n}\n")
    read_poses.cache_clear()


def rotation(pose: Settled) -> Float32[np.ndarray, "3 3"]:
    """Matrix of the tilt: first about x, then about y."""
    (cr, cp), (sr, sp) = (f(np.radians([pose.roll, pose.pitch])) for f in (np.cos, np.sin))
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    return (about_y @ about_x).astype(np.float32)
