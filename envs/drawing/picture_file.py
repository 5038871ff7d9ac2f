"""Textures and backgrounds read from a user's image files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from menagerie.envs.core.errors import UserError
from menagerie.envs.drawing.background import Backdrop, Background, Rays, lay_ground
from menagerie.envs.drawing.camera import FIELD_OF_VIEW, VIEWS
from menagerie.envs.drawing.shading import Light

SIDES = 8, 4096  # least and most pixels
# A little more than any camera sees, in radians.
REACH = np.radians(FIELD_OF_VIEW) * 1.45
OWN_LIGHT = Light((1.1, 1.05, 0.98), (0.36, 0.40, 0.46), (0.2, 0.18, 0.16))


def read_picture(path: Path) -> Float32[np.ndarray, "h w 3"]:
    """Linear colours of a picture file of 8 bits a channel."""
    from menagerie.envs.core.pictures import Limits, open_picture, reason

    try:
        with open_picture(path, Limits(sides=SIDES)) as picture:
            pixels = np.asarray(picture.convert("RGB"), np.float32) / 255
    except Exception as error:  # decoders raise exceptions of many types
        raise UserError(f"{path} can't be read as a picture ({reason(error)}); give another") from error
    return pixels ** np.float32(2.2)


def sample(
    picture: Float32[np.ndarray, "h w 3"], u: np.ndarray, v: np.ndarray, repeat: bool
) -> Float32[np.ndarray, "*n 3"]:
    """Return bilinear colours at columns `u` and rows `v`, as shares of width and height.

    Outside the picture the whole picture repeats if `repeat` is set; otherwise its edge pixels do.
    """
    height, width = picture.shape[:2]
    x, y = u * width - 0.5, v * height - 0.5
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    a, b = (x - left)[..., None], (y - top)[..., None]

    def at(row: np.ndarray, column: np.ndarray) -> np.ndarray:
        if repeat:
            return picture[row % height, column % width]
        return picture[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]

    above = at(top, left) * (1 - a) + at(top, left + 1) * a
    below = at(top + 1, left) * (1 - a) + at(top + 1, left + 1) * a
    return (above * (1 - b) + below * b).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PictureTexture:
    """A picture projected through the body along an oblique line, so that no side shows streaks."""

    picture: Float32[np.ndarray, "h w 3"]
    tile: float  # metres
    specular: float
    gloss: float

    def colors(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Linear colours at points, whose coordinates are in metres."""
        x, y, z = points.T
        return sample(self.picture, (x + 0.6 * y) / self.tile, -(z + 0.35 * y) / self.tile, repeat=True)


def picture_background(picture: Float32[np.ndarray, "h w 3"], horizon: float) -> Background:
    """Make a background of a picture. Below `horizon` (share of the picture's height, from the top) the picture is
    ground, on which shadows fall.

    A ray's direction alone decides which point of the picture it shows, as with distant scenery.
    """

    def draw(rays: Rays, light: Light) -> Backdrop:
        slope = rays.height / REACH
        lowest = -0.75  # least slope of any camera's rays, in the same unit
        v = np.where(slope > 0, horizon - slope, horizon + slope / lowest * (1 - horizon))
        colors = sample(picture, rays.azimuth / REACH + 0.5, v, repeat=False)
        return lay_ground(colors, np.full_like(rays.height, 1e4), rays, light, colors)

    return Background(OWN_LIGHT, draw)


def by_view(backgrounds: Sequence[Background]) -> Background:
    """Make a background that shows one of the given ones for each pair of camera and sun, in turn."""

    def draw(rays: Rays, light: Light) -> Backdrop:
        return backgrounds[VIEWS.index(rays.camera.view) % len(backgrounds)].draw(rays, light)

    return Background(OWN_LIGHT, draw)
