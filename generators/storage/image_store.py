"""The image store, in which every scene is rendered only once.

A store is a folder of immutable shards (generators/storage/shards.py), whose rows an index lists and numbers
(store_index.py). Writers of one store wait for each other.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers, writing
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.validation import SIDE, check_number
from menagerie.envs.render.occlusion import area_table
from menagerie.envs.scene import MOST_THINGS, Scene
from menagerie.envs.world import World
from menagerie.generators.storage.scene_checks import RenderChecks
from menagerie.generators.storage.shards import (
    Rendered,
    Shard,
    ShardLocation,
    by_shard,
    check_shard,
    codec_options,
    hidden_in,
    write_shard,
)
from menagerie.generators.storage.store_index import StoreIndex, index_to_extend
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary

SHARD_ROWS = 1024
READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}

Progress = Callable[[str, int, int], None]


class ImageStore:
    """The store of one world at one resolution, in a folder of its own below `root`."""

    def __init__(self, root: Path, world: World, resolution: int) -> None:
        from menagerie.envs.render import image_identity

        check_number("resolution", resolution, SIDE)
        self.root = root
        self.world = world
        self.resolution = resolution
        self.identity = image_identity(world, resolution)
        self.atlas = root / "atlas"
        self.folder = root / f"{world.name}-{resolution}px-{self.identity}"
        self.vocabulary = Vocabulary.of(world)

    def listing(self) -> StoreIndex:
        """Read the store's index: its shards, and the scenes of all rows."""
        return StoreIndex(self.folder, self.identity)

    def index(self) -> tuple[list[Shard], np.ndarray]:
        """All shards, and the scene table of all rows."""
        listing = self.listing()
        return listing.shards, listing.table()

    def rows(self, scenes: Sequence[Scene]) -> np.ndarray:
        """The row (n,) int64 of each of `scenes`; raises for a scene that isn't rendered yet."""
        rows = self.listing().find(self._records(scenes))
        missing = [scenes[i].key for i in np.flatnonzero(rows < 0)]
        if missing:
            raise UserError(f"{len(missing)} scenes are not in the store {self.folder}, the first is {missing[0]!r}")
        return rows

    def _records(self, scenes: Sequence[Scene]) -> np.ndarray:
        """The record of each scene; for a scene with names that this world lacks, a record that no store has."""
        try:
            return self.vocabulary.encode(scenes)
        except (ValueError, OverflowError):
            if len(scenes) == 1:
                return np.full(1, -1, SCENE_TYPE)
            return np.concatenate([self._records([scene]) for scene in scenes])

    def hidden(self, rows: Int64[np.ndarray, " n"]) -> Float32[np.ndarray, "n things"]:
        """The share of each of up to eight things of `rows` that others hide; NaN for no thing, or if unknown.

        Each shard that has any of `rows` is read once, all of its masks included.
        """
        shares = np.empty((len(rows), MOST_THINGS), np.float32)
        shards = self.listing().shards
        for i, mine in by_shard(np.array([shard.start for shard in shards], np.int64), rows):
            location = ShardLocation(self.folder / shards[i].file)
            shares[mine] = hidden_in(location, shards[i].codec)[rows[mine] - shards[i].start]
        return shares

    def missing(self, scenes: Sequence[Scene]) -> list[Scene]:
        """The distinct scenes that the store doesn't have yet, sorted."""
        return self._missing(self.listing(), scenes)

    def _missing(self, listing: StoreIndex, scenes: Sequence[Scene]) -> list[Scene]:
        distinct = list(set(scenes))
        rows = listing.find(self._records(distinct))
        return sorted(distinct[i] for i in np.flatnonzero(rows < 0))

    @property
    def scene_bytes(self) -> int:
        """Bytes of one scene's image and mask, uncompressed."""
        return self.resolution**2 * 4

    def add(
        self, scenes: Sequence[Scene], workers: int = 1, codec: str = "none", progress: Progress | None = None
    ) -> None:
        """Render the missing ones of `scenes` into new shards; existing shards aren't changed.

        An interrupted call can be repeated: it continues after the last complete shard. `progress` is called with the
        stage ("factors", then "scenes"), the number done and the total.
        """
        codec_options(codec)
        report = progress or (lambda stage, done, total: None)
        asked = [self.world.check(scene) for scene in scenes]
        if self.world.row:
            self.renderer(workers=1).prepare(asked)  # raises for what a row can't show, before anything is made
        with self.locked() as writable:
            if not writable:
                return self._check_complete(asked)
            listing = self._to_extend()
            self._restore_shards(listing, workers)
            missing = self._missing(listing, asked)
            if not missing:
                return
            renderer, checks = self.renderer(workers), RenderChecks()
            renderer.prepare(missing, lambda done, total: report("factors", done, total))
            for start in range(0, len(missing), SHARD_ROWS):
                self._append(listing, renderer, checks, missing[start : start + SHARD_ROWS], codec)
                report("scenes", min(start + SHARD_ROWS, len(missing)), len(missing))
            self._to_extend()

    def _to_extend(self) -> StoreIndex:
        return index_to_extend(self.folder, self.identity, self.vocabulary)

    def renderer(self, workers: int):
        """The renderer of the store's scenes; its atlas entries are cached for all users of the store."""
        from menagerie.envs.render.row import renderer_of

        return renderer_of(self.world, self.resolution, self.atlas, workers)

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Wait for other writers of the folder and keep them out; yields whether the folder may be written to.

        A read-only folder needs no lock for reading: files are only ever replaced whole.
        """
        lock = FileLock(self.folder / ".lock")
        try:
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            if error.errno not in READ_ONLY or not self.folder.is_dir():
                raise
            yield False
            return
        try:
            clear_leftovers(self.folder, alone=True)  # writers hold the lock, ...
            clear_leftovers(self.folder, below=True)  # ... except tasks, which write into folders of their own
            yield True
        finally:
            lock.release()

    def _check_complete(self, scenes: Sequence[Scene]) -> None:
        """Raise unless a store that can't be written to has all of `scenes`, and the files of all its shards."""
        listing = self.listing()
        if lacking := self._missing(listing, scenes) or self._lost_shards(listing):
            raise UserError(
                f"the store {self.folder} lacks {len(lacking)} scenes or shards and can't be written to; copy it to "
                "another --store, or have its disk written to"
            )

    def _lost_shards(self, listing: StoreIndex) -> list[Shard]:
        """The shards whose files were deleted; raises if one is cut short or has other scenes than the index says."""
        for shard in listing.shards:
            location = ShardLocation(self.folder / shard.file)
            if location.file.exists():
                shown = check_shard(location, self.identity)
                if not np.array_equal(shown, listing.part(shard.start, shard.start + shard.rows)):
                    raise UserError(f"{location.file} is another shard under this one's name; {location.remedy}")
        return [shard for shard in listing.shards if not (self.folder / shard.file).exists()]

    def _restore_shards(self, listing: StoreIndex, workers: int) -> None:
        """Render again the shards whose files were deleted."""
        for shard in self._lost_shards(listing):
            scenes = self.vocabulary.decode(listing.part(shard.start, shard.start + shard.rows))
            rows, renderer = self.vocabulary.encode(scenes), self.renderer(workers)
            rendered = Rendered(*renderer.render(scenes), area_table(renderer.areas(scenes)))
            write_shard(self.folder / shard.file, self.identity, self.vocabulary, rows, rendered, shard.codec)

    def _append(self, listing: StoreIndex, renderer, checks: RenderChecks, scenes: list[Scene], codec: str) -> None:
        # A process killed between the two writes leaves a shard that the index does not list;
        # the next writer renders its scenes again and replaces it.
        path = self._next_shard(listing)
        self.write_part(path, renderer, checks, scenes, codec)
        listing.append(path.name, self.vocabulary.encode(scenes), codec)

    def write_part(self, path: Path, renderer, checks: RenderChecks, scenes: list[Scene], codec: str) -> None:
        """Render, check and write a shard to `path`, without adding it to the index."""
        images, masks = renderer.render(scenes)
        areas = renderer.areas(scenes)
        checks.require(scenes, images, masks, areas)
        rows, rendered = self.vocabulary.encode(scenes), Rendered(images, masks, area_table(areas))
        write_shard(path, self.identity, self.vocabulary, rows, rendered, codec)

    def adopt(self, parts: Sequence[tuple[Path, list[Scene]]], codec: str) -> None:
        """Of the shards that tasks wrote below the store, add those whose scenes are all missing; delete the rest."""
        with self.locked():
            listing, taken = self._to_extend(), set()
            for path, scenes in parts:
                missing = len(self._missing(listing, scenes)) == len(set(scenes))
                if path.exists() and missing and taken.isdisjoint(scenes):
                    check_shard(ShardLocation(path), self.identity)
                    placed = path.replace(self._next_shard(listing))
                    listing.append(placed.name, self.vocabulary.encode(scenes), codec)
                    taken.update(scenes)
                path.unlink(missing_ok=True)
            self._to_extend()

    def _next_shard(self, listing: StoreIndex) -> Path:
        return self.folder / f"shard-{len(listing.shards):05d}.h5"
