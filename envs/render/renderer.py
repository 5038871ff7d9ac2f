"""Renders scenes: builds the atlas entries that they need, caches them, and composes the scenes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.processes import end_with_parent, without_main, workers_context
from menagerie.envs.core.validation import SIDE, check_number
from menagerie.envs.custom.cutouts import check_sharp, load_cutout
from menagerie.envs.drawing.camera import view_of
from menagerie.envs.render import entry_identity
from menagerie.envs.render.entry import Entry, build_entry, entry_path, read_entry, write_entry
from menagerie.envs.render.entry_pool import EntryPool
from menagerie.envs.render.stage import EntryKey
from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world

CHUNK = 256  # scenes composed at once
POOL_BYTES = 2 << 30  # entries held in memory before all are dropped


def start_worker(world: World) -> None:
    """Prepare a worker process: load the user's own ingredients, and end when the parent ends."""
    end_with_parent()
    if world.source and load_world(world.source) != world:
        raise UserError(f"{world.source} or its files changed since they were read")


class Pictures(NamedTuple):
    """Images and instance masks of n scenes."""

    images: UInt8[np.ndarray, "n h w 3"]
    masks: UInt8[np.ndarray, "n h w"]


class Renderer:
    """Renders a world's scenes at one resolution.

    The pixels depend only on the scene, its world, the resolution and `RENDER_VERSION`: not on the other scenes, their
    order, `workers`, or on what `cache` holds.
    """

    def __init__(self, world: World, resolution: int, cache: Path | None = None, workers: int = 1):
        check_number("resolution", resolution, SIDE)
        if world.row:
            raise UserError(f"things of world {world.name!r} are patterns in a row, not bodies; choose another world")
        for name, digest in world.cutouts:
            check_sharp(world.name, name, load_cutout(digest), resolution)
        self.world, self.resolution, self.workers = world, resolution, workers
        self.build = partial(
            build_entry,
            textures=tuple(map(world.drawn, world.textures)),
            backgrounds=world.backgrounds,
            resolution=resolution,
            cutouts=dict(world.cutouts),
        )
        self._folder = None if cache is None else Path(cache) / entry_identity(resolution, world)
        self._pool: EntryPool | None = None
        self._areas: dict[EntryKey, int] = {}

    def prepare(self, scenes: Sequence[Scene], progress: Callable[[int, int], None] | None = None) -> None:
        """Build the entries that `scenes` need and that are not cached yet, in `workers` processes.

        Calls `progress` with the number built so far and the total.
        """
        missing = self.missing(scenes)
        for done, (key, entry) in enumerate(zip(missing, self._entries(missing), strict=True), start=1):
            self._keep(key, entry)
            if progress is not None:
                progress(done, len(missing))

    def missing(self, scenes: Sequence[Scene]) -> list[EntryKey]:
        """Return the keys of entries that `scenes` need and that aren't cached, grouped by camera and sun."""
        return [key for key in self._keys(scenes) if not self._has(key)]

    def render(self, scenes: Sequence[Scene], out: Pictures | None = None) -> Pictures:
        """Return images, and instance masks: 0 for the background, i + 1 for `scene.things[i]`.

        They are written into `out` if it is given. Reusing it in a loop is several times faster, because allocating
        memory costs more than the pixels.
        """
        side = self.resolution
        images, masks = out or (
            np.empty((len(scenes), side, side, 3), np.uint8),
            np.empty((len(scenes), side, side), np.uint8),
        )
        masks[:] = 0
        for start in range(0, len(scenes), CHUNK):
            chunk = scenes[start : start + CHUNK]
            self._load(chunk)
            here = slice(start, start + len(chunk))
            self._held.compose(chunk, images[here], masks[here])
        return Pictures(images, masks)

    def areas(self, scenes: Sequence[Scene]) -> list[list[int]]:
        """Return the number of pixels that each thing covers without the others; the scenes were rendered before."""
        return [[self._areas[EntryKey.of(thing, scene.view)] for thing in scene.things] for scene in scenes]

    @property
    def _held(self) -> EntryPool:
        """The entries in memory."""
        if self._pool is None:
            self._pool = EntryPool(self.world.textures, self.world.backgrounds, self.resolution)
        return self._pool

    def _keys(self, scenes: Sequence[Scene]) -> list[EntryKey]:
        """Return the key of each entry that scenes need, once; raises for a scene that isn't of this world."""
        keys = set()
        for scene in scenes:
            self.world.check(scene)
            for thing in scene.things:
                choose("slot", thing.slot, SLOTS)
                keys.add(EntryKey.of(thing, scene.view))
        # Sorted by view: entries of one view share backgrounds, of which only the last few are cached.
        return sorted(keys, key=lambda key: (view_of(key.view).camera, view_of(key.view).light, key))

    def _has(self, key: EntryKey) -> bool:
        return key in self._held or (self._folder is not None and entry_path(self._folder, key).exists())

    def _entries(self, keys: list[EntryKey]) -> Iterator[Entry]:
        if self.workers <= 1 or len(keys) <= 1:
            yield from map(self.build, keys)
            return
        with ProcessPoolExecutor(
            min(self.workers, len(keys)),
            mp_context=workers_context(),
            initializer=partial(start_worker, self.world),
        ) as workers:
            try:
                with without_main():  # the script of a notebook user, who calls no command
                    entries = workers.map(self.build, keys)
                yield from entries
            except BrokenProcessPool as error:
                raise UserError(
                    "a process that renders has ended: killed, out of memory, or the world's files changed while it "
                    "started (see above); what is finished is kept, run the command again"
                ) from error

    def _keep(self, key: EntryKey, entry: Entry) -> None:
        """Keep an entry: on disk if there is a cache folder, which saves memory; else in memory."""
        if self._folder is None:
            self._held.add(key, entry)
            self._areas[key] = entry.area
        else:
            write_entry(entry_path(self._folder, key), entry)

    def _load(self, scenes: Sequence[Scene]) -> None:
        """Load into memory the entries that `scenes` need. With a cache folder, a pool that has grown too large is
        dropped first."""
        if self._held.nbytes > POOL_BYTES and self._folder is not None:
            self._pool = None
        new = [scene for scene in scenes if not self._held.holds(scene)]
        self.prepare(new)
        for key in self._keys(new):
            if key not in self._held:
                entry = self._read(key)
                self._held.add(key, entry)
                self._areas[key] = entry.area

    def _read(self, key: EntryKey) -> Entry:
        """Read an entry from the cache; if its file is missing or damaged, build it again."""
        path = entry_path(self._folder, key)
        entry = read_entry(path)
        if entry is None:
            entry = self.build(key)
            write_entry(path, entry)
        return entry
