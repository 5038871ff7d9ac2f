"""Textures and backgrounds read from a user's image files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.drawing.background import Backdrop, Background, Rays, lay_ground
from menagerie.envs.drawing.camera import FIELD_OF_VIEW, VIEWS
from menagerie.envs.drawing.shading import Light

LEAST_SIDE, MOST_SIDE = 8, 4096  # pixels
# A little more than any camera sees, in radians.
REACH = np.radians(FIELD_OF_VIEW) * 1.45
OWN_LIGHT = Light((1.1, 1.05, 0.98), (0.36, 0.40, 0.46), (0.2, 0.18, 0.16))


def read_pixels(
    path: Path, content: Path | bytes, mode: str, formats: tuple[str, ...] | None = None, least: int = 1
) -> UInt8[np.ndarray, "h w c"]:
    """Return the pixels of the picture in the file `path`, of which `content` is the path or the bytes, upright and in
    Pillow's `mode`. A side may have `least` to `MOST_SIDE` pixels."""
    from menagerie.envs.core.pictures import Limits, open_picture, picture_error, turn_upright

    try:
        with open_picture(content, Limits(formats, (least, MOST_SIDE))) as picture:
            return np.asarray(turn_upright(picture, mode))
    except Exception as error:  # decoders raise exceptions of many types
        raise UserError(f"{path} can't be read as a picture ({picture_error(error)}); give another") from error


def read_picture(path: Path) -> Float32[np.ndarray, "h w 3"]:
    """Linear colours of a picture file of 8 bits a channel."""
    return (read_pixels(path, path, "RGB", least=LEAST_SIDE).astype(np.float32) / 255) ** np.float32(2.2)


def bilinear(
    picture: Float32[np.ndarray, "h w c"], x: np.ndarray, y: np.ndarray, beyond: Literal["repeat", "edge", "clear"]
) -> Float32[np.ndarray, "*n c"]:
    """Interpolate between pixels at columns `x` and rows `y`. Beyond the picture the whole picture repeats, its edge
    pixels do, or all is 0."""
    height, width = picture.shape[:2]
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    a, b = (x - left)[..., None], (y - top)[..., None]

    def at(row: np.ndarray, column: np.ndarray) -> np.ndarray:
        if beyond == "repeat":
            return picture[row % height, column % width]
        found = picture[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        if beyond == "clear":
            found[(row < 0) | (row >= height) | (column < 0) | (column >= width)] = 0
        return found

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
        (height, width), (x, y, z) = self.picture.shape[:2], points.T
        across, down = (x + 0.6 * y) / self.tile, -(z + 0.35 * y) / self.tile
        return bilinear(self.picture, across * width - 0.5, down * height - 0.5, "repeat")


def picture_background(picture: Float32[np.ndarray, "h w 3"], horizon: float) -> Background:
    """Make a background of a picture. Below `horizon` (share of the picture's height, from the top) the picture is
    ground, on which shadows fall.

    A ray's direction alone decides which point of the picture it shows, as with distant scenery.
    """

    def draw(rays: Rays, light: Light) -> Backdrop:
        slope = rays.height / REACH
        lowest = -0.75  # least slope of any camera's rays, in the same unit
        v = np.where(slope > 0, horizon - slope, horizon + slope / lowest * (1 - horizon))
        across, (height, width) = rays.azimuth / REACH + 0.5, picture.shape[:2]
        colors = bilinear(picture, across * width - 0.5, v * height - 0.5, "edge")
        return lay_ground(colors, np.full_like(rays.height, 1e4), rays, light, colors)

    return Background(OWN_LIGHT, draw)


def by_view(backgrounds: Sequence[Background]) -> Background:
    """Make a background that shows one of the given ones for each pair of camera and sun, in turn."""

    def draw(rays: Rays, light: Light) -> Backdrop:
        return backgrounds[VIEWS.index(rays.camera.view) % len(backgrounds)].draw(rays, light)

    return Background(OWN_LIGHT, draw)
