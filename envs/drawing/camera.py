"""The camera: a pinhole that looks a little down on the scene."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.view import TARGET, VIEWS, View
from menagerie.envs.shapes.vectors import transform, unit

FIELD_OF_VIEW = 29.0  # degrees, across the whole image


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

    @property
    def axes(self) -> Float32[np.ndarray, "3 3"]:
        """Rows: right, up and forward in the world."""
        forward = (TARGET - self.eye) / np.linalg.norm(TARGET - self.eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, forward), forward]).astype(np.float32)

    def project(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Column, row (in samples from the top left) and depth (metres along the view axis)."""
        right, up, depth = transform(self.axes, points - self.eye).T
        center = self.size / 2
        return np.stack([center + self.focal * right / depth, center - self.focal * up / depth, depth], 1).astype(
            np.float32
        )

    def rays(self) -> Float32[np.ndarray, "size size 3"]:
        """Unit direction through the middle of every sample."""
        offset = ((np.arange(self.size) + 0.5 - self.size / 2) / self.focal).astype(np.float32)
        across, down = np.meshgrid(offset, offset)
        return unit(transform(self.axes.T, np.stack([across, -down, np.ones_like(across)], -1)))


def supersampling(resolution: int) -> int:
    """Samples along a pixel's side: more where pixels are large."""
    return int(np.clip(-(-512 // resolution), 2, 6))


def average(samples: np.ndarray, side: int) -> np.ndarray:
    """Mean over the samples of each pixel: (h*side, w*side, ...) to (h, w, ...)."""
    height, width = samples.shape[0] // side, samples.shape[1] // side
    return samples.reshape(height, side, width, side, *samples.shape[2:]).mean((1, 3))
