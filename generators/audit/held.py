"""Rows that held in one split of an audit: the next split that shows them doesn't compare them once more."""

from pathlib import Path

from menagerie.envs.scene import Scene

Shard = tuple[Path, str]  # a file and the group in it


class Held:
    """Rows of one world's shards without a problem, each with the scene that it was compared with."""

    def __init__(self) -> None:
        self._pictures: dict[Shard, dict[int, tuple[Scene, bytes]]] = {}
        self._again: dict[Shard, dict[int, Scene]] = {}

    def add(self, shard: Shard, row: int, scene: Scene, picture: bytes) -> None:
        """A row of a shard that is what it must be, and the digest of its picture."""
        self._pictures.setdefault(shard, {})[row] = scene, picture

    def picture(self, shard: Shard, row: int, scene: Scene) -> bytes | None:
        """The digest of the picture of a row that held as this scene; None if it wasn't compared with it."""
        its, picture = self._pictures.get(shard, {}).get(row, (None, None))
        return picture if its == scene else None

    def add_again(self, shard: Shard, row: int, scene: Scene) -> None:
        """A row that was the same when it was rendered again."""
        self._again.setdefault(shard, {})[row] = scene

    def again(self, shard: Shard, row: int, scene: Scene) -> bool:
        """Whether a row was the same as this scene, rendered again."""
        return self._again.get(shard, {}).get(row) == scene
