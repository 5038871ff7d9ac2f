"""Atlas entries end to end in a few large arrays, as the compositor reads them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from menagerie.envs.drawing.camera import View, average, supersampling, view_of
from menagerie.envs.render.compositor import ENTRY_COLUMNS, MOST_THINGS, compose
from menagerie.envs.render.entry import Entry, to_bytes
from menagerie.envs.render.stage import EntryKey, ground
from menagerie.envs.scene import Scene


class _Growing:
    """An array that grows at its end by doubling its capacity."""

    def __init__(self, dtype: type, *columns: int, room: int = 1024):
        self.array, self.length = np.empty((room, *columns), dtype), 0

    def append(self, rows: np.ndarray) -> int:
        """Add rows; returns the index of the first."""
        start, self.length = self.length, self.length + len(rows)
        if self.length > len(self.array):
            room = np.empty((2 * self.length, *self.array.shape[1:]), self.array.dtype)
            room[:start] = self.array[:start]
            self.array = room
        self.array[start : self.length] = rows
        return start


class EntryPool:
    """Entries of one world at one resolution, ready for the compositor."""

    def __init__(self, textures: tuple[str, ...], backgrounds: tuple[str, ...], resolution: int):
        self.resolution = resolution
        self._textures = {name: index for index, name in enumerate(textures)}
        self._backgrounds = {name: index for index, name in enumerate(backgrounds)}
        self._backdrop_index: dict[tuple[str, View], int] = {}
        self._backdrops = _Growing(np.uint8, 2, resolution, resolution, 3, room=1)
        self._index: dict[EntryKey, int] = {}
        self._entries = _Growing(np.int64, ENTRY_COLUMNS)
        self._shadow_boxes = _Growing(np.int64, len(backgrounds), 5)
        self._light_boxes = _Growing(np.float64, 6)
        self._alpha, self._shadow, self._colors = _Growing(np.uint8), _Growing(np.uint8), _Growing(np.uint8, 6)
        self._depth, self._light, self._map = _Growing(np.float32), _Growing(np.float32, 3), _Growing(np.float32)

    def __contains__(self, key: EntryKey) -> bool:
        return key in self._index

    def holds(self, scene: Scene) -> bool:
        """Whether the pool has the entries of all things in a scene, and the world has its textures and background."""
        return scene.background in self._backgrounds and all(
            # plain tuples equal keys and are made in a tenth of the time
            (thing.animal, thing.slot, scene.view, thing.size) in self._index and thing.texture in self._textures
            for thing in scene.things
        )

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the pool's pixels, backdrops and depth maps."""
        held = (self._backdrops, self._alpha, self._shadow, self._colors, self._depth, self._light, self._map)
        return sum(growing.array.nbytes for growing in held)

    def add(self, key: EntryKey, entry: Entry) -> None:
        """Add an entry to the pool."""
        pixels = self._alpha.append(entry.alpha.reshape(-1))
        self._depth.append(entry.depth.reshape(-1))
        self._light.append(entry.light.reshape(-1, 3))
        colors = self._colors.append(entry.colors.reshape(-1, 6))
        depth_map = self._map.append(entry.map_depth.reshape(-1))
        row = [*entry.corner, *entry.alpha.shape, pixels, colors, *entry.map_corner, *entry.map_depth.shape, depth_map]
        areas = entry.shadow_box[:, 2] * entry.shadow_box[:, 3]
        offsets = self._shadow.append(entry.shadow) + np.cumsum(areas) - areas
        self._shadow_boxes.append(np.concatenate([entry.shadow_box, offsets[:, None]], 1)[None])
        self._light_boxes.append(_light_box(entry)[None])
        self._index[key] = self._entries.append(np.array([row], np.int64))

    def compose(
        self, scenes: Sequence[Scene], images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"]
    ) -> None:
        """Write images and instance masks of scenes whose entries are held; `masks` must be zero."""
        pooled = (self._alpha, self._depth, self._light, self._colors, self._shadow, self._map)
        compose(
            self._requests(scenes),
            self._entries.array,
            self._shadow_boxes.array,
            self._light_boxes.array,
            tuple(growing.array for growing in pooled),
            self._backdrops.array,
            images,
            masks,
        )

    def _requests(self, scenes: Sequence[Scene]) -> Int64[np.ndarray, "n columns"]:
        requests = np.full((len(scenes), 2 + 2 * MOST_THINGS), -1, np.int64)
        for request, scene in zip(requests, scenes, strict=True):
            row = [self._backgrounds[scene.background], self._backdrop(scene.background, view_of(scene.view))]
            for animal, texture, slot, size in scene.things:
                row += self._index[animal, slot, scene.view, size], self._textures[texture]
            request[: len(row)] = row
        return requests

    def _backdrop(self, background: str, view: View) -> int:
        """Return the index of a background's lit and unlit picture, which are drawn at the first use."""
        key = (background, view)
        if key not in self._backdrop_index:
            drawn, side = ground(background, self.resolution, view), supersampling(self.resolution)
            pictures = np.array([to_bytes(average(picture, side)) for picture in (drawn.lit, drawn.unlit)])
            self._backdrop_index[key] = self._backdrops.append(pictures[None])
        return self._backdrop_index[key]


def _light_box(entry: Entry) -> Float64[np.ndarray, "6"]:
    """Return the box in light space where a thing receives light, and the least depth in its own map: see `compose`."""
    column, row, depth = entry.light[entry.alpha > 0].T
    return np.array([column.min(), column.max(), row.min(), row.max(), depth.max(), entry.map_depth.min()], np.float64)
