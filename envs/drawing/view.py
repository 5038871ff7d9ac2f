"""What a view's number sets for the whole scene: where the camera stands and where the sun is.

There are few of each, so that one drawn background serves many scenes. What varies per thing is in
`menagerie.envs.drawing.placement`.
"""

import zlib
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from jaxtyping import Float32

TARGET = np.array([0.0, 0.0, 1.02], np.float32)  # metres: where every camera looks
# Degrees to the right of straight on, height of the eye and distance on the ground in metres.
CAMERAS = ((0.0, 2.35, 7.3), (4.5, 2.6, 7.25), (-4.5, 2.15, 7.4), (2.0, 1.95, 7.35))
# Degrees from straight behind the camera (positive: from the left) and above the horizon.
SUNS = ((39.0, 46.5), (22.0, 52.0), (52.0, 50.0))


@dataclass(frozen=True)
class View:
    """A camera and a sun; equal views share their backgrounds."""

    camera: tuple[float, float, float] = CAMERAS[0]
    light: tuple[float, float] = SUNS[0]

    @property
    def eye(self) -> Float32[np.ndarray, "3"]:
        """Where the camera stands, in metres."""
        turn, height, distance = self.camera
        angle = np.radians(turn)
        return np.array([distance * np.sin(angle), -distance * np.cos(angle), height], np.float32)

    @property
    def sun(self) -> Float32[np.ndarray, "3"]:
        """Unit vector towards the sun."""
        around, up = np.radians(self.light)
        return np.array([-np.sin(around) * np.cos(up), -np.cos(around) * np.cos(up), np.sin(up)], np.float32)


VIEWS = tuple(View(camera, sun) for camera, sun in product(CAMERAS, SUNS))


@lru_cache(maxsize=4096)
def view_of(number: int) -> View:
    """The camera and the sun of view `number`, the same for every scene; 0 has the first of each."""
    return VIEWS[number and np.random.default_rng(zlib.crc32(f"view|{number}".encode())).integers(len(VIEWS))]
