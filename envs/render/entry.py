"""The atlas: what one animal in one slot, view and size adds to any scene, at one resolution.

Scenes are products, so factors are rendered, not scenes. An entry holds the animal's geometry
once, a lit and an unlit layer for each texture and background, and the shadow it throws on
each background. `menagerie.envs.render.compositor` puts entries together.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from menagerie.envs.animals import load_animal
from menagerie.envs.backgrounds import load_background
from menagerie.envs.drawing.camera import average, supersampling
from menagerie.envs.drawing.raster import Samples, trace
from menagerie.envs.drawing.shading import shade, skin
from menagerie.envs.drawing.shadows import SOFTNESS, ShadowMap, receiving_points, shadow_map, visibility
from menagerie.envs.drawing.view import View, view_of
from menagerie.envs.render.stage import Ground, camera, ground, placed, to_bytes
from menagerie.envs.scene import Thing
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.textures import load_texture


class EntryKey(NamedTuple):
    """What an entry shows."""

    animal: str
    slot: str
    view: int
    size: str = ""

    @classmethod
    def of(cls, thing: Thing, view: int) -> "EntryKey":
        """The key for a thing of a scene; an entry holds all textures."""
        return cls(thing.animal, thing.slot, view, thing.size)


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

    @property
    def area(self) -> int:
        """Number of pixels that the thing covers, without other things, by at least half."""
        return int((self.alpha >= 128).sum())

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Window(NamedTuple):
    """The pixels around an animal."""

    top: int
    left: int
    height: int
    width: int
    side: int  # samples along a pixel

    def mean(self, samples: Samples, values: np.ndarray) -> np.ndarray:
        """Sum of `values` (one row per sample) within each pixel, divided by the samples per pixel."""
        canvas = np.zeros((self.height * self.side, self.width * self.side, *values.shape[1:]), np.float32)
        canvas[samples.rows - self.top * self.side, samples.columns - self.left * self.side] = values
        return average(canvas, self.side)


def build_entry(key: EntryKey, textures: tuple[str, ...], backgrounds: tuple[str, ...], resolution: int) -> Entry:
    """Render the entry of `key` for all the given textures and backgrounds."""
    thing, view = placed(*key), view_of(key.view)
    (samples,) = trace([thing], camera(resolution, view))
    window = _window(samples, supersampling(resolution))
    shadows = shadow_map([thing], view.sun)
    receivers = receiving_points(samples.world, samples.normals, view.sun)
    coverage = window.mean(samples, np.ones(len(samples.rows), np.float32))
    share = np.maximum(coverage, np.float32(1e-6))
    sunlit = visibility(shadows, receivers)
    colors = _layers(key.animal, thing[0], samples, view, sunlit, textures, backgrounds, window)
    masks = [_ground_shadow(ground(name, resolution, view), shadows, samples, window.side) for name in backgrounds]
    return Entry(
        corner=np.array([window.top, window.left], np.int64),
        alpha=to_bytes(coverage),
        depth=window.mean(samples, samples.depth) / share,
        light=window.mean(samples, receivers) / share[..., None],
        colors=colors,
        shadow_box=np.array([box for box, _ in masks], np.int64).reshape(-1, 4),
        shadow=np.concatenate([mask.reshape(-1) for _, mask in masks]),
        map_corner=np.array([shadows.row, shadows.column], np.int64),
        map_depth=shadows.depth,
    )


def _window(samples: Samples, side: int) -> _Window:
    top, left = int(samples.rows.min()) // side, int(samples.columns.min()) // side
    bottom, right = int(samples.rows.max()) // side, int(samples.columns.max()) // side
    return _Window(top, left, bottom - top + 1, right - left + 1, side)


def _layers(
    animal_name: str,
    mesh: Mesh,
    samples: Samples,
    view: View,
    sunlit: Float32[np.ndarray, " n"],
    textures: tuple[str, ...],
    backgrounds: tuple[str, ...],
    window: _Window,
) -> UInt8[np.ndarray, "textures backgrounds h w 6"]:
    """Lit (with the animal's shadow on itself) and unlit layers."""
    animal = load_animal(animal_name)
    layers = np.empty((len(textures), len(backgrounds), window.height, window.width, 6), np.uint8)
    for row, texture in zip(layers, textures, strict=True):
        surface = skin(samples, animal, mesh, load_texture(texture), view.sun)
        for layer, background in zip(row, backgrounds, strict=True):
            unlit, lit = shade(samples, surface, load_background(background).light, view.sun)
            lit = unlit + (lit - unlit) * sunlit[:, None]
            layer[:] = to_bytes(window.mean(samples, np.concatenate([lit, unlit], 1)))
    return layers


def _ground_shadow(
    backdrop: Ground, shadows: ShadowMap, samples: Samples, side: int
) -> tuple[tuple[int, int, int, int], UInt8[np.ndarray, "h w"]]:
    """The share of the sun that the animal leaves on a background, cut to where it is below 1.

    A pixel's mean is taken over the samples that the animal does not cover, because only
    those show the background.
    """
    points = backdrop.light_points
    height, width = shadows.depth.shape
    near = (np.abs(points[..., 0] - shadows.column - width / 2) < width / 2 + SOFTNESS) & (
        np.abs(points[..., 1] - shadows.row - height / 2) < height / 2 + SOFTNESS
    )
    sunlit = np.ones(near.shape, np.float32)
    sunlit[near] = visibility(shadows, points[near])
    bare = np.ones(near.shape, np.float32)
    bare[samples.rows, samples.columns] = 0
    uncovered = average(bare, side)
    mean = np.where(uncovered > 0, average(sunlit * bare, side) / np.maximum(uncovered, np.float32(1e-6)), 1)
    mask = to_bytes(mean.astype(np.float32))
    rows, columns = np.nonzero(mask < 255)
    if not len(rows):
        return (0, 0, 0, 0), mask[:0, :0]
    top, left, bottom, right = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
    return (int(top), int(left), int(bottom - top), int(right - left)), mask[top:bottom, left:right]
