"""Renders scenes: builds what the atlas lacks of them, and composes them from it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.processes import end_with_parent, keep_out_main_module, workers_context
from menagerie.envs.core.validation import SIDE, check_number
from menagerie.envs.custom.cutouts import check_sharp, load_cutout
from menagerie.envs.drawing.camera import view_index
from menagerie.envs.render import entry_identity
from menagerie.envs.render.atlas import Atlas, Key
from menagerie.envs.render.compositor import AREA, compose
from menagerie.envs.render.entry import backdrop, build_entry
from menagerie.envs.render.renderables import EntryKey
from menagerie.envs.scene import MOST_OBJECTS, Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world

CHUNK = 256  # scenes composed at once


def start_worker(world: World) -> None:
    """Prepare a worker process: load the user's own ingredients, and end when the parent ends."""
    end_with_parent()
    if world.source and load_world(world.source) != world:
        raise UserError(f"{world.source} or its files changed since they were read")


class Pictures(NamedTuple):
    """Images and instance masks of n scenes."""

    images: UInt8[np.ndarray, "n h w 3"]
    masks: UInt8[np.ndarray, "n h w"]


def empty_pictures(number: int, side: int) -> Pictures:
    """Allocate memory for pictures, without setting its content."""
    return Pictures(np.empty((number, side, side, 3), np.uint8), np.empty((number, side, side), np.uint8))


def build_record(key: Key, resolution: int, **of_entries: Any) -> UInt8[np.ndarray, " bytes"]:
    """Build the record of an entry, as `build_entry` does, or of a backdrop."""
    if isinstance(key, EntryKey):
        return build_entry(key, resolution=resolution, **of_entries).record()
    return backdrop(*key, resolution).reshape(-1)


class Renderer:
    """Renders a world's scenes at one resolution.

    The pixels depend only on the scene, its world, the resolution and `RENDER_VERSION`: not on the other scenes, their
    order, `workers`, or on what `cache` holds.
    """

    def __init__(self, world: World, resolution: int, cache: Path | None = None, workers: int = 1):
        check_number("resolution", resolution, SIDE)
        if world.row:
            raise UserError(f"objects of world {world.name!r} are patterns in a row, not bodies; choose another world")
        for name, digest in world.cutouts:
            check_sharp(f"{world.name}: a cut-out of {name!r}", load_cutout(digest), resolution)
        self.world, self.resolution, self.workers = world, resolution, workers
        self.build = partial(
            build_record,
            textures=tuple(map(world.drawn, world.textures)),
            backgrounds=world.backgrounds,
            resolution=resolution,
            cutouts=dict(world.cutouts),
        )
        self.atlas = Atlas(None if cache is None else Path(cache) / f"atlas-{entry_identity(resolution, world)}.bin")
        self._textures = {name: index for index, name in enumerate(world.textures)}
        self._backgrounds = {name: index for index, name in enumerate(world.backgrounds)}

    def prepare(self, scenes: Sequence[Scene], progress: Callable[[int, int], None] | None = None) -> None:
        """Build the entries that `scenes` need and that the atlas lacks, and their backdrops, in `workers` processes.

        Calls `progress` with the number built so far and the total.
        """
        missing = self.missing(scenes)
        indices = {view_index(key.view) for key in missing}
        grounds = [(name, index) for index in indices for name in self.world.backgrounds]
        self._build([*missing, *(key for key in grounds if key not in self.atlas.index)], progress)

    def missing(self, scenes: Sequence[Scene]) -> list[EntryKey]:
        """Return the keys of entries that `scenes` need and that the atlas lacks."""
        self.atlas.refresh()
        return [key for key in self._keys(scenes) if key not in self.atlas.index]

    def render(self, scenes: Sequence[Scene], out: Pictures | None = None) -> Pictures:
        """Return images, and instance masks: 0 for the background, i + 1 for `scene.objects[i]`.

        They are written into `out` if it is given. Reusing it in a loop is several times faster, because allocating
        memory costs more than the pixels.
        """
        images, masks = out or empty_pictures(len(scenes), self.resolution)
        masks[:] = 0
        for start in range(0, len(scenes), CHUNK):
            chunk = scenes[start : start + CHUNK]
            here = slice(start, start + len(chunk))
            try:
                requests = self._requests(chunk)
            except KeyError:
                self._load(chunk)
                requests = self._requests(chunk)
            compose(requests, len(self._backgrounds), *self.atlas.views, images[here], masks[here])
        return Pictures(images, masks)

    def areas(self, scenes: Sequence[Scene]) -> list[list[int]]:
        """Return the number of pixels that each object covers by at least half, without the others."""
        self._load(scenes)
        numbers, places = self.atlas.views[2], self.atlas.checked
        return [
            [int(numbers[places[EntryKey.of(obj, scene.view)] // 8 + AREA]) for obj in scene.objects]
            for scene in scenes
        ]

    def _requests(self, scenes: Sequence[Scene]) -> Int64[np.ndarray, "n columns"]:
        """Return the scenes as `compose` takes them; raises `KeyError` if a record isn't loaded yet."""
        requests, places = np.full((len(scenes), 2 + 2 * MOST_OBJECTS), -1, np.int64), self.atlas.checked
        for request, scene in zip(requests, scenes, strict=True):
            row = [self._backgrounds[scene.background], places[scene.background, view_index(scene.view)]]
            for animal, texture, slot, size in scene.objects:
                # Plain tuples equal keys and are made in a tenth of the time.
                row += places[animal, slot, scene.view, size], self._textures[texture]
            request[: len(row)] = row
        return requests

    def _keys(self, scenes: Sequence[Scene]) -> list[EntryKey]:
        """Return the key of each entry that scenes need, once; raises for a scene that isn't of this world."""
        keys = set()
        for scene in scenes:
            self.world.check(scene)
            for obj in scene.objects:
                choose("slot", obj.slot, SLOTS)
                keys.add(EntryKey.of(obj, scene.view))
        return sorted(keys)

    def _load(self, scenes: Sequence[Scene]) -> None:
        """Check the records that `scenes` need; build those that the atlas lacks or that are damaged."""
        needed = [*self._keys(scenes), *sorted({(scene.background, view_index(scene.view)) for scene in scenes})]
        self.atlas.refresh()
        while lacking := [key for key in needed if key not in self.atlas.checked]:
            self.atlas.check(lacking)
            self._build([key for key in lacking if key not in self.atlas.index])

    def _build(self, keys: Sequence[Key], progress: Callable[[int, int], None] | None = None) -> None:
        """Build records and append them. Those of one camera and sun come together: they share grounds, of which only
        the last few are kept."""
        keys = sorted(keys, key=lambda key: view_index(key.view) if isinstance(key, EntryKey) else key[1])
        for done, (key, record) in enumerate(zip(keys, self._records(keys), strict=True), start=1):
            self.atlas.append(key, record)
            if progress is not None:
                progress(done, len(keys))

    def _records(self, keys: Sequence[Key]) -> Iterator[UInt8[np.ndarray, " bytes"]]:
        if self.workers <= 1 or len(keys) <= 1:
            yield from map(self.build, keys)
            return
        with ProcessPoolExecutor(
            min(self.workers, len(keys)),
            mp_context=workers_context(),
            initializer=partial(start_worker, self.world),
        ) as workers:
            try:
                with keep_out_main_module():  # the script of a notebook user, who calls no command
                    records = workers.map(self.build, keys)
                yield from records
            except BrokenProcessPool as error:
                raise UserError(
                    "a process that renders has ended: killed, out of memory, or the world's files changed while it "
                    "started (see above); what is finished is kept, run the command again"
                ) from error
