"""The image store, in which every scene is rendered only once.

A store is a folder of immutable shards (generators/storage/shards.py), whose rows `index.h5` lists and numbers. Writers
of one store wait for each other.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h5py
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
    check_identity,
    check_shard,
    codec_options,
    hidden_in,
    read_shard_table,
    shard_table,
    write_shard,
)
from menagerie.generators.storage.tables import (
    DIGEST,
    digest_of_table,
    open_hdf5,
    read_attribute,
    read_table,
    write_attribute,
    write_hdf5,
)
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary

SHARD_ROWS = 1024
INDEX = "index.h5"
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

    def index(self) -> tuple[list[Shard], np.ndarray]:
        """All shards, and the scene table of all rows."""
        path = self.folder / INDEX
        if not path.exists():
            return [], np.empty(0, SCENE_TYPE)
        with open_hdf5(path, "delete it and run again: what it lists is rendered anew") as file:
            shards, scenes = read_shard_table(file, "shards"), read_table(file, "scenes", SCENE_TYPE)
            if read_attribute(file, DIGEST) != digest_of_table(scenes, shard_table(shards)):
                raise ValueError("it was changed since it was written")
            check_identity(path, read_attribute(file, "identity"), self.identity)
            return shards, scenes

    def rows(self, scenes: Sequence[Scene]) -> np.ndarray:
        """The row (n,) int64 of each of `scenes`; raises for a scene that isn't rendered yet."""
        row_of = self._row_of()
        missing = [scene.key for scene in scenes if scene not in row_of]
        if missing:
            raise UserError(f"{len(missing)} scenes are not in the store {self.folder}, the first is {missing[0]!r}")
        return np.array([row_of[scene] for scene in scenes], dtype=np.int64)

    def hidden(self, rows: Int64[np.ndarray, " n"]) -> Float32[np.ndarray, "n things"]:
        """The share of each of up to eight things of `rows` that others hide; NaN for no thing, or if unknown.

        It reads each shard that has any of them once, and whole.
        """
        shares = np.empty((len(rows), MOST_THINGS), np.float32)
        shards = self.index()[0]
        for i, mine in by_shard(np.array([shard.start for shard in shards], np.int64), rows):
            location = ShardLocation(self.folder / shards[i].file)
            shares[mine] = hidden_in(location, shards[i].codec)[rows[mine] - shards[i].start]
        return shares

    def missing(self, scenes: Sequence[Scene]) -> list[Scene]:
        """The distinct scenes that the store doesn't have yet, in the order of their keys."""
        return sorted(set(scenes) - self._row_of().keys())

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
            self._restore_shards(workers)
            missing = self.missing(asked)
            if not missing:
                return
            renderer, checks = self.renderer(workers), RenderChecks()
            renderer.prepare(missing, lambda done, total: report("factors", done, total))
            for start in range(0, len(missing), SHARD_ROWS):
                self._append(renderer, checks, missing[start : start + SHARD_ROWS], codec)
                report("scenes", min(start + SHARD_ROWS, len(missing)), len(missing))

    def _row_of(self) -> dict[Scene, int]:
        return {scene: row for row, scene in enumerate(self.vocabulary.decode(self.index()[1]))}

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
        """Raise unless all of `scenes` can be read from a store that can't be written to."""
        if lacking := self.missing(scenes) or self._lost_shards():
            raise UserError(
                f"the store {self.folder} lacks {len(lacking)} scenes or shards and can't be written to; copy it to "
                "another --store, or have its disk written to"
            )

    def _lost_shards(self) -> list[Shard]:
        """The shards whose files were deleted; raises if one is cut short or has other scenes than the index says."""
        shards, table = self.index()
        for shard in shards:
            location = ShardLocation(self.folder / shard.file)
            if location.file.exists():
                shown = check_shard(location, self.identity)
                if not np.array_equal(shown, table[shard.start : shard.start + shard.rows]):
                    raise UserError(f"{location.file} is another shard under this one's name; {location.remedy}")
        return [shard for shard in shards if not (self.folder / shard.file).exists()]

    def _restore_shards(self, workers: int) -> None:
        """Render again the shards whose files were deleted."""
        table = self.index()[1]
        for shard in self._lost_shards():
            scenes = self.vocabulary.decode(table[shard.start : shard.start + shard.rows])
            rows, renderer = self.vocabulary.encode(scenes), self.renderer(workers)
            rendered = Rendered(*renderer.render(scenes), area_table(renderer.areas(scenes)))
            write_shard(self.folder / shard.file, self.identity, self.vocabulary, rows, rendered, shard.codec)

    def _append(self, renderer, checks: RenderChecks, scenes: list[Scene], codec: str) -> None:
        # A process killed between the two writes leaves a shard that the index does not list;
        # the next writer renders its scenes again and replaces it.
        self.write_part(self._next_shard(), renderer, checks, scenes, codec)
        self._list(scenes, codec)

    def write_part(self, path: Path, renderer, checks: RenderChecks, scenes: list[Scene], codec: str) -> None:
        """Render, check and write a shard to `path`, without adding it to the index."""
        images, masks = renderer.render(scenes)
        areas = renderer.areas(scenes)
        checks.require(scenes, images, masks, areas)
        rows, rendered = self.vocabulary.encode(scenes), Rendered(images, masks, area_table(areas))
        write_shard(path, self.identity, self.vocabulary, rows, rendered, codec)

    def adopt(self, parts: Sequence[tuple[Path, list[Scene]]], codec: str) -> None:
        """Add shards that tasks wrote below the store, if all their scenes are still missing."""
        with self.locked():
            known = set(self._row_of())
            for path, scenes in parts:
                if path.exists() and known.isdisjoint(scenes):
                    check_shard(ShardLocation(path), self.identity)
                    path.replace(self._next_shard())
                    self._list(scenes, codec)
                    known.update(scenes)
                path.unlink(missing_ok=True)

    def _next_shard(self) -> Path:
        return self.folder / f"shard-{len(self.index()[0]):05d}.h5"

    def _list(self, scenes: list[Scene], codec: str) -> None:
        """Add the next shard, which holds `scenes`, to the index."""
        shards, table = self.index()
        rows = self.vocabulary.encode(scenes)
        shards.append(Shard(self._next_shard().name, len(table), len(scenes), codec))
        whole, listed = np.concatenate([table, rows]), shard_table(shards)

        def fill(file: h5py.File) -> None:
            write_attribute(file, "identity", self.identity)
            write_attribute(file, "vocabulary", self.vocabulary.to_json(whole))
            file["scenes"], file["shards"] = whole, listed
            write_attribute(file, DIGEST, digest_of_table(whole, listed))

        write_hdf5(self.folder / INDEX, fill)
