"""The camera and the sun of each view: a pinhole camera that looks a little down on the scene, and a direction of
light.

There are only a few cameras and suns, so that one drawn background serves many scenes.
`menagerie.envs.drawing.placement` varies each object's pose.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from jaxtyping import Float32

from menagerie.envs.shapes.vectors import normalize, transform

FIELD_OF_VIEW = 29.0  # degrees, across the whole image
TARGET = np.array([0.0, 0.0, 1.02], np.float32)  # metres: where every camera looks
# For each camera: degrees to the right of straight on, height of the eye in metres, its distance on the ground in
# metres.
CAMERAS = ((0.0, 2.35, 7.3), (4.5, 2.6, 7.25), (-4.5, 2.15, 7.4), (2.0, 1.95, 7.35))
# For each sun: degrees from straight behind the camera (positive: from the left), and degrees above the horizon.
SUNS = ((39.0, 46.5), (22.0, 52.0), (52.0, 50.0))


@dataclass(frozen=True)
class View:
    """A camera and a sun; equal views share their backgrounds."""

    camera: tuple[float, float, float] = CAMERAS[0]
    light: tuple[float, float] = SUNS[0]

    @property
    def eye(self) -> Float32[np.ndarray, "3"]:
        """The position of the camera, in metres."""
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
def view_index(number: int) -> int:
    """Return the place in `VIEWS` of the camera and the sun of view `number`; view 0 has the first of each."""
    return number and int(np.random.default_rng(zlib.crc32(f"view|{number}".encode())).integers(len(VIEWS)))


def view_of(number: int) -> View:
    """Return the camera and the sun of view `number`, the same for every scene."""
    return VIEWS[view_index(number)]


@dataclass(frozen=True)
class Camera:
    """A square camera of `size` samples a side, at the position that `view` gives."""

    size: int
    view: View = VIEWS[0]

    @property
    def eye(self) -> Float32[np.ndarray, "3"]:
        """Position in metres."""
        return self.view.eye

    @property
    def focal(self) -> float:
        """Focal length in samples."""
        return 0.5 * self.size / float(np.tan(np.radians(FIELD_OF_VIEW) / 2))

    @cached_property
    def axes(self) -> Float32[np.ndarray, "3 3"]:
        """Rows: the camera's right, up and forward directions in world coordinates."""
        forward = (TARGET - self.eye) / np.linalg.norm(TARGET - self.eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, forward), forward]).astype(np.float32)

    def project(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Return column, row (in samples from the top left) and depth (metres along the view axis) of points."""
        right, up, depth = transform(self.axes, points - self.eye).T
        center = self.size / 2
        return np.stack([center + self.focal * right / depth, center - self.focal * up / depth, depth], 1).astype(
            np.float32
        )

    def rays(self) -> Float32[np.ndarray, "size size 3"]:
        """Return the unit direction through the middle of every sample."""
        offset = ((np.arange(self.size) + 0.5 - self.size / 2) / self.focal).astype(np.float32)
        across, down = np.meshgrid(offset, offset)
        return normalize(transform(self.axes.T, np.stack([across, -down, np.ones_like(across)], -1)))


def supersampling(resolution: int) -> int:
    """Return the number of samples along a pixel's side, 2 to 6; it is greater at low resolutions."""
    return int(np.clip(-(-512 // resolution), 2, 6))


def average(samples: np.ndarray, side: int) -> np.ndarray:
    """Return the mean over the samples of each pixel: (h*side, w*side, ...) to (h, w, ...)."""
    height, width = samples.shape[0] // side, samples.shape[1] // side
    return samples.reshape(height, side, width, side, *samples.shape[2:]).mean((1, 3))
