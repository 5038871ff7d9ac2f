"""Textures and backgrounds from picture files of the user's own."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from envs.background import Backdrop, Background, Rays, lay_ground
from envs.camera import FIELD_OF_VIEW
from envs.errors import UserError
from envs.shading import Light

SMALLEST = 8  # pixels a side


def read_picture(path: Path) -> Float32[np.ndarray, "h w 3"]:
    """Linear colours of a picture file."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"), np.float32) / 255
    except Exception as error:  # a missing file, a truncated one, a bomb: each raises its own
        raise UserError(f"{path} can't be read as a picture ({type(error).__name__}: {error})") from error
    if min(pixels.shape[:2]) < SMALLEST:
        raise UserError(
            f"{path} is {pixels.shape[1]} x {pixels.shape[0]} pixels; at least {SMALLEST} a side are needed"
        )
    return pixels ** np.float32(2.2)


def sample(picture: Float32[np.ndarray, "h w 3"], u: np.ndarray, v: np.ndarray) -> Float32[np.ndarray, "*n 3"]:
    """Bilinear colours at columns `u` and rows `v`, in pictures; it repeats in both directions."""
    height, width = picture.shape[:2]
    x, y = u * width - 0.5, v * height - 0.5
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    a, b = (x - left)[..., None], (y - top)[..., None]
    rows, columns = (top % height, (top + 1) % height), (left % width, (left + 1) % width)
    above = picture[rows[0], columns[0]] * (1 - a) + picture[rows[0], columns[1]] * a
    below = picture[rows[1], columns[0]] * (1 - a) + picture[rows[1], columns[1]] * a
    return (above * (1 - b) + below * b).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PictureTexture:
    """A picture carried through the body along a slanting line, so that no side shows streaks."""

    picture: Float32[np.ndarray, "h w 3"]
    tile: float  # metres
    specular: float
    gloss: float

    def colors(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Linear colours of points in metres."""
        x, y, z = points.T
        return sample(self.picture, (x + 0.6 * y) / self.tile, -(z + 0.35 * y) / self.tile)


def picture_background(picture: Float32[np.ndarray, "h w 3"], light: Light, horizon: float) -> Background:
    """A picture behind the things; below `horizon` (share of its height) it is ground that takes shadows.

    It hangs on the directions of the rays, so that it moves with the camera as scenery far away does.
    """

    def draw(rays: Rays, light: Light) -> Backdrop:
        reach = np.radians(FIELD_OF_VIEW) * 1.3  # a little more than any camera sees
        straight = rays.directions[rays.camera.size // 2, rays.camera.size // 2, 2]
        u = np.clip(rays.azimuth / reach + 0.5, 0.001, 0.999)
        slope = rays.height / reach
        v = np.where(slope > 0, horizon - slope, horizon - slope * (1 - horizon) / (0.5 - straight / reach))
        colors = sample(picture, u, np.clip(v, 0.001, 0.999))
        far = np.full_like(rays.height, 1e4)
        return lay_ground(colors, far, rays, light, colors)

    return Background(light, draw)
