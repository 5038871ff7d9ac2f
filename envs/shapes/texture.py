"""The definition of a texture: a colour that noise varies, a pattern over it, and its highlight. The noise comes from a
small tileable volume with four frequency bands, coarse to fine."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float32
from numba import njit

from menagerie.envs.shapes.patterns import Pattern

SIDE = 64  # cells
CELLS_PER_METRE = 32.0
BANDS = ((1, 4), (4, 10), (10, 22), (18, 32))  # waves per side


@lru_cache(maxsize=1)
def _volume() -> Float32[np.ndarray, "64 64 64 4"]:
    waves = np.fft.fftfreq(SIDE) * SIDE
    radius = np.sqrt(waves[:, None, None] ** 2 + waves[None, :, None] ** 2 + waves[None, None] ** 2)
    random = np.random.default_rng(0)
    channels = []
    for low, high in BANDS:
        spectrum = np.fft.fftn(random.standard_normal((SIDE, SIDE, SIDE)))
        channel = np.fft.ifftn(spectrum * ((radius >= low) & (radius < high))).real
        channels.append(channel / channel.std())
    return np.stack(channels, -1).astype(np.float32)


@lru_cache(maxsize=1)
def _ground_level() -> Float32[np.ndarray, "64 64 4"]:
    return np.ascontiguousarray(_volume()[:, :, 0])


@njit(cache=True, nogil=True)
def _sample(volume, points, out):  # pragma: no cover
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        ix, iy, iz = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
        fx, fy, fz = x - ix, y - iy, z - iz
        for c in range(4):
            out[i, c] = 0.0
        for corner in range(8):
            dx, dy, dz = corner & 1, (corner >> 1) & 1, corner >> 2
            weight = (fx if dx else 1 - fx) * (fy if dy else 1 - fy) * (fz if dz else 1 - fz)
            cell = volume[(ix + dx) & (SIDE - 1), (iy + dy) & (SIDE - 1), (iz + dz) & (SIDE - 1)]
            for c in range(4):
                out[i, c] += weight * cell[c]


@njit(cache=True, nogil=True)
def _sample_ground(level, x, y, factor, out):  # pragma: no cover
    """Fill `out` (4, n) with what `_sample` returns at height 0, times the factor of each point."""
    for i in range(x.shape[0]):
        ix, iy = int(np.floor(x[i])), int(np.floor(y[i]))
        fx, fy = x[i] - ix, y[i] - iy
        left, right = level[ix & (SIDE - 1)], level[(ix + 1) & (SIDE - 1)]
        near, far = iy & (SIDE - 1), (iy + 1) & (SIDE - 1)
        a, b, c, d = (1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy
        for k in range(4):
            total = np.float32(a * left[near, k])
            total = np.float32(total + b * right[near, k])
            total = np.float32(total + c * left[far, k])
            out[k, i] = np.float32(total + d * right[far, k]) * factor[i]


def noise_below(
    points: Float32[np.ndarray, "h w 3"], scale: float, factor: Float32[np.ndarray, "h w"]
) -> Float32[np.ndarray, "4 h w"]:
    """Return the bands of `noise` below points, at height 0, times the factor of each point."""
    x, y = (points[..., axis].ravel() * np.float32(scale * CELLS_PER_METRE) for axis in (0, 1))
    out = np.empty((4, *factor.shape), np.float32)
    _sample_ground(_ground_level(), x, y, factor.reshape(-1), out.reshape(4, -1))
    return out


def noise(points: Float32[np.ndarray, "*n 3"], scale: float = 1.0) -> Float32[np.ndarray, "*n 4"]:
    """Return noise of zero mean and at most unit variance at points in metres; features grow as `scale` shrinks."""
    flat = np.ascontiguousarray(points, np.float32).reshape(-1, 3) * np.float32(scale * CELLS_PER_METRE)
    return _noise(flat.tobytes()).copy().reshape(*points.shape[:-1], 4)


@lru_cache(maxsize=1)  # the textures of an atlas entry take it at the same points
def _noise(points: bytes) -> Float32[np.ndarray, "n 4"]:
    flat = np.frombuffer(points, np.float32).reshape(-1, 3)
    out = np.empty((len(flat), 4), np.float32)
    _sample(_volume(), flat, out)
    return out


@dataclass(frozen=True)
class Texture:
    """A surface: `albedo` maps the four bands of `noise`, coarse to fine, to a linear colour in 0..1."""

    albedo: Callable[[Float32[np.ndarray, "n 4"]], Float32[np.ndarray, "n 3"]]
    specular: float  # strength of the highlight
    gloss: float  # its sharpness: the exponent of Blinn and Phong
    pattern: Pattern | None = None

    def colors(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Linear colours at points, whose coordinates are in metres."""
        colors = self.albedo(noise(points))
        return self.pattern(points, colors) if self.pattern else colors


def even_texture(
    red: float, green: float, blue: float, grain: float = 0.06, specular: float = 0.35, gloss: float = 60.0
) -> Texture:
    """Make a texture of one linear colour, which noise varies by `grain`; by default it is like toy plastic."""

    def albedo(noise: Float32[np.ndarray, "n 4"]) -> Float32[np.ndarray, "n 3"]:
        return (color(red, green, blue) * (1 + grain * noise[:, 1:2])).clip(0, 1)

    return Texture(albedo, specular, gloss)


def balls(points: Float32[np.ndarray, "n 3"], radius: float, cell: float) -> Bool[np.ndarray, " n"]:
    """Whether points lie in balls around the corners and centres of cubes with edges of length `cell`; all in
    metres."""
    inside = np.zeros(len(points), bool)
    for shift in (0.0, 0.5):
        apart = points / np.float32(cell) - np.float32(shift)
        apart = apart - np.round(apart)
        inside |= (apart * apart).sum(1) < np.float32((radius / cell) ** 2)
    return inside


def color(red: float, green: float, blue: float) -> Float32[np.ndarray, "3"]:
    """A linear colour as an array."""
    return np.array([red, green, blue], np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return a soft step from 0 to 1 around 0."""
    return 1 / (1 + np.exp(-x))
