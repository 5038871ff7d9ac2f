"""Builds the entries of the atlas: the pixels that one animal in one slot, view and size adds to any scene, at one
resolution.

Entries and backgrounds are rendered once each and then combined, so that scenes needn't be rendered one by one. An
entry holds the animal's geometry once, a lit and an unlit layer for each texture and background, and the shadow that it
throws on each background. `menagerie.envs.render.compositor` puts entries together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64, UInt8
from numba import njit

from menagerie.envs.catalog import load_background
from menagerie.envs.drawing.camera import VIEWS, average, supersampling, view_of
from menagerie.envs.drawing.raster import Samples
from menagerie.envs.drawing.shading import shade
from menagerie.envs.drawing.shadows import ground_shadow, visibility
from menagerie.envs.render.compositor import SHADOWS
from menagerie.envs.render.renderables import EntryKey, Ground, Renderable, ground, renderable


@dataclass(frozen=True, eq=False)
class Entry:
    """Arrays of one entry; colours are display values, premultiplied by the coverage."""

    corner: Int64[np.ndarray, "2"]  # first row and column in the image
    alpha: UInt8[np.ndarray, "h w"]  # coverage
    depth: Float32[np.ndarray, "h w"]  # metres, mean over the covered samples
    light: Float32[np.ndarray, "h w 3"]  # light space, mean over the covered samples
    colors: UInt8[np.ndarray, "textures backgrounds h w 6"]  # lit and unlit
    shadow_box: Int64[np.ndarray, "backgrounds 4"]  # row, column, height, width in the image
    shadow: UInt8[np.ndarray, " pixels"]  # share of the sun, backgrounds one after the other
    map_corner: Int64[np.ndarray, "2"]  # first row and column in the sun's depth map
    map_depth: Float32[np.ndarray, "map_h map_w"]

    def record(self) -> UInt8[np.ndarray, " bytes"]:
        """Return the entry as the compositor reads it: numbers, and then the arrays end to end."""
        arrays = (self.depth, self.light, self.map_depth, self.alpha, self.colors)  # in the order of DEPTH to COLORS
        sizes = self.shadow_box[:, 2] * self.shadow_box[:, 3]
        place = 8 * (SHADOWS + 5 * len(sizes))
        places = []
        for array in arrays:
            places.append(place // array.itemsize)
            place += array.nbytes
        area = int((self.alpha >= 128).sum())  # without other objects in front
        row = [*self.corner, *self.alpha.shape, *self.map_corner, *self.map_depth.shape, *places, area]
        column, line, depth = self.light[self.alpha > 0].T
        box = column.min(), column.max(), line.min(), line.max(), depth.max(), self.map_depth.min()
        shadows = np.column_stack([self.shadow_box, place + np.cumsum(sizes) - sizes])
        parts = (np.array(row, np.int64), np.array(box, np.float64), shadows, *arrays, self.shadow)
        return np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.uint8) for part in parts])


class _Window(NamedTuple):
    """The smallest rectangle of pixels around an object."""

    top: int
    left: int
    height: int
    width: int
    side: int  # samples along a pixel

    def mean(self, samples: Samples, values: np.ndarray) -> np.ndarray:
        """Weight `values` (a row per sample) by alpha, sum them within each pixel, and divide by the samples
        per pixel."""
        canvas = np.zeros((self.height * self.side, self.width * self.side, *values.shape[1:]), np.float32)
        covered = values * samples.alpha.reshape(-1, *[1] * (values.ndim - 1))
        canvas[samples.rows - self.top * self.side, samples.columns - self.left * self.side] = covered
        return average(canvas, self.side)

    def pixels(self, samples: Samples) -> Int64[np.ndarray, " n"]:
        """Return the number of each sample's pixel, counted row by row."""
        rows, columns = samples.rows // self.side - self.top, samples.columns // self.side - self.left
        return rows * self.width + columns


def to_uint8(display: np.ndarray) -> np.ndarray:
    """Convert values in 0..1 to uint8."""
    return (display * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def build_entry(
    key: EntryKey,
    textures: Sequence[str],
    backgrounds: Sequence[str],
    resolution: int,
    cutouts: Mapping[str, str] | None = None,
) -> Entry:
    """Render the entry of `key` for all the given textures and backgrounds. `cutouts` maps the world's cut-outs to
    their hashes."""
    obj, view = renderable(key, resolution, cutouts or {}), view_of(key.view)
    samples, window = obj.samples, _window(obj.samples, supersampling(resolution))
    coverage = window.mean(samples, np.ones(len(samples.rows), np.float32))
    share = np.maximum(coverage, np.float32(1e-6))
    masks = _ground_shadows([ground(name, resolution, view) for name in backgrounds], obj, window)
    return Entry(
        corner=np.array([window.top, window.left], np.int64),
        alpha=to_uint8(coverage),
        depth=window.mean(samples, samples.depth) / share,
        light=window.mean(samples, obj.light_points) / share[..., None],
        colors=_layers(obj, view.sun, textures, backgrounds, window),
        shadow_box=np.array([box for box, _ in masks], np.int64).reshape(-1, 4),
        shadow=np.concatenate([mask.reshape(-1) for _, mask in masks]),
        map_corner=np.array([obj.shadows.row, obj.shadows.column], np.int64),
        map_depth=obj.shadows.depth,
    )


def _window(samples: Samples, side: int) -> _Window:
    top, left = int(samples.rows.min()) // side, int(samples.columns.min()) // side
    bottom, right = int(samples.rows.max()) // side, int(samples.columns.max()) // side
    return _Window(top, left, bottom - top + 1, right - left + 1, side)


def _layers(
    obj: Renderable,
    sun: Float32[np.ndarray, "3"],
    textures: Sequence[str],
    backgrounds: Sequence[str],
    window: _Window,
) -> UInt8[np.ndarray, "textures backgrounds h w 6"]:
    """Return a lit and an unlit layer for each texture and background; in the lit one a body shadows itself."""
    lights = [load_background(name).light for name in backgrounds]
    sunlit = visibility(obj.shadows, obj.light_points if obj.shades_itself else obj.light_points[:0])
    layers = np.empty((len(textures), len(backgrounds), window.height, window.width, 6), np.uint8)
    pixels, share = window.pixels(obj.samples), np.float32(window.side**2)
    for row, texture in zip(layers, textures, strict=True):
        colors = shade(obj.samples, obj.skin(texture), lights, sun)
        _sum_up(colors, sunlit, obj.samples.alpha, pixels, share, row.reshape(len(backgrounds), -1, 6))
    return layers


@njit(cache=True, nogil=True)
def _sum_up(colors, sunlit, alpha, pixels, share, out):  # pragma: no cover
    """Write the mean colours of each pixel, as bytes, into `out` (lights, pixels, 6).

    `colors` (lights, 6, samples) are weighted by `alpha`; lit ones are mixed with unlit ones by `sunlit`, the share of
    the sun, unless it is empty. A pixel has `share` samples.
    """
    sums = np.empty((out.shape[1], 6), np.float32)
    for k in range(out.shape[0]):
        sums[:] = 0
        for i in range(pixels.shape[0]):
            pixel, weight = pixels[i], alpha[i]
            for c in range(3):
                lit, unlit = colors[k, c, i], colors[k, c + 3, i]
                if len(sunlit):
                    lit = unlit + (lit - unlit) * sunlit[i]
                sums[pixel, c] += lit * weight
                sums[pixel, c + 3] += unlit * weight
        for pixel in range(out.shape[1]):
            for c in range(6):
                out[k, pixel, c] = np.uint8(sums[pixel, c] / share * np.float32(255) + np.float32(0.5))


def _ground_shadows(
    grounds: Sequence[Ground], obj: Renderable, window: _Window
) -> list[tuple[tuple[int, int, int, int], UInt8[np.ndarray, "h w"]]]:
    """Return the shadow of an object on each background: its box (row, column, height, width), and the share of the sun
    in it, 0..255."""
    samples, shape, side = obj.samples, grounds[0].light_points.shape[:2], window.side
    bare = np.ones(shape, np.float32)
    bare[samples.rows, samples.columns] -= samples.alpha
    uncovered, bottom = np.ones([length // side for length in shape], np.float32), window.top + window.height
    uncovered[window.top : bottom] = average(bare[window.top * side : bottom * side], side)
    known = grounds[0].light_points, np.full(shape, -1, np.float32)
    masks = []
    for at in grounds:
        contact = obj.contact(at.light_points)
        masks.append(ground_shadow(obj.shadows, at.light_points, at.reach, known, contact, bare, uncovered))
    return list(map(_cut, masks))


def _cut(mask: UInt8[np.ndarray, "h w"]) -> tuple[tuple[int, int, int, int], UInt8[np.ndarray, "h2 w2"]]:
    """Return the box of the pixels that aren't fully lit, and its part of the mask."""
    rows, columns = np.nonzero(mask < 255)
    if not len(rows):
        return (0, 0, 0, 0), mask[:0, :0]
    top, left, bottom, right = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
    return (int(top), int(left), int(bottom - top), int(right - left)), mask[top:bottom, left:right]


def backdrop(background: str, index: int, resolution: int) -> UInt8[np.ndarray, "2 h w 3"]:
    """Return a background's lit and unlit picture, as the camera and sun of number `index` show it."""
    drawn, side = ground(background, resolution, VIEWS[index]), supersampling(resolution)
    return np.array([to_uint8(average(picture, side)) for picture in (drawn.lit, drawn.unlit)])
