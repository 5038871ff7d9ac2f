"""The rows of a store that a split shows: the scene that each must show, its shard, and the rows at which a check
fails."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32, Int64, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Inaccessible
from menagerie.envs.render.occlusion import hidden_shares
from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.storage.pixels import PixelReader
from menagerie.generators.storage.split_file import Split
from menagerie.generators.storage.tables import open_hdf5

BLOCK = 512  # rows in memory at once
CLAIMS = {
    "read": "every image and mask can be read",
    "digest": "every image and mask is the one that was rendered",
    "ids": "every mask holds its scene's things",
    "places": "things stand as their places and relations say",
    "alike": "no two rows have the same picture",
    "visible": "every thing shows as much as the recipe says",
    "colors": "things have the colours of their textures",
    "again": "images and masks are the same when rendered again",
}


Shard = tuple[Path, str]  # file, and group in the file


class Sound:
    """Rows of one world's shards that were found sound, each with the scene that it must show.

    Later splits of the same audit skip them.
    """

    def __init__(self) -> None:
        self._pictures: dict[Shard, dict[int, tuple[Scene, bytes]]] = {}
        self._again: dict[Shard, dict[int, Scene]] = {}

    def add(self, shard: Shard, row: int, scene: Scene, picture: bytes) -> None:
        """Note that a row shows its scene correctly, with the digest of its picture."""
        self._pictures.setdefault(shard, {})[row] = scene, picture

    def picture(self, shard: Shard, row: int, scene: Scene) -> bytes | None:
        """The digest of a row's picture if the row was found sound with this scene; else None."""
        compared, picture = self._pictures.get(shard, {}).get(row, (None, None))
        return picture if compared == scene else None

    def add_again(self, shard: Shard, row: int, scene: Scene) -> None:
        """Note that a row was rendered again and was the same."""
        self._again.setdefault(shard, {})[row] = scene

    def again(self, shard: Shard, row: int, scene: Scene) -> bool:
        """Whether a row was rendered again with this scene and was the same."""
        return self._again.get(shard, {}).get(row) == scene


@dataclass(frozen=True)
class Block:
    """Some rows with their scenes, images and masks."""

    rows: Int64[np.ndarray, " n"]
    scenes: list[Scene]
    images: UInt8[np.ndarray, "n h w 3"]
    masks: UInt8[np.ndarray, "n h w"]
    hidden: Float32[np.ndarray, "n things"]
    """The share of each thing that others hide; NaN if unknown or no thing."""
    unreadable: list[tuple[int, str]]
    """Rows that can't be read, with the reason; they are not in `rows`."""


class ShownRows:
    """All rows that a split shows, of its records and of their partners, each once, in the store's order."""

    def __init__(self, split: Split) -> None:
        self.split, self.reader = split, PixelReader(split, verify=False)
        swap, scene_of, place_of = SWAPS[split.recipe["kind"]], {}, {}
        for name, r in split.subsets.items():
            columns = zip(r.scenes, r.rows.tolist(), r.partners.tolist(), strict=True)
            for i, (scene, row, partner) in enumerate(columns):
                scene_of[row] = scene
                place_of[row] = f"record {i} of {name}"
                if partner >= 0:
                    scene_of[partner] = swap(scene)
                    place_of.setdefault(partner, f"the partner of record {i} of {name}")
        self.rows = np.array(sorted(scene_of), np.int64)
        self._scene_of, self._place_of = scene_of, place_of

    def __len__(self) -> int:
        return len(self.rows)

    def scene(self, row: int) -> Scene:
        """The scene that a row must show."""
        return self._scene_of[row]

    def scenes(self, rows: Int64[np.ndarray, " n"]) -> list[Scene]:
        """The scene that each of `rows` must show."""
        return [self._scene_of[row] for row in rows.tolist()]

    @cached_property
    def shards(self) -> list[Shard]:
        """File and group of each shard."""
        places = map(self.split.location, range(len(self.split.shards)))
        return [(place.file.resolve(), place.group) for place in places]

    def at(self, row: int) -> tuple[Shard, int]:
        """The shard that holds a row, and the row's position in it."""
        i = self.shard_of(row)
        return self.shards[i], row - int(self.reader.starts[i])

    @cached_property
    def areas(self) -> Int32[np.ndarray, "all things"]:
        """The pixels that each thing of every row of the store covers without the others; -1 if unknown."""
        return self.reader.areas(np.arange(sum(shard.rows for shard in self.split.shards)))

    @cached_property
    def resolution(self) -> int:
        """Side of the images, in pixels."""
        location = self.split.location(self.shard_of(int(self.rows[0])))
        with open_hdf5(location.file, location.remedy) as file:
            return file[location.group]["masks"].shape[1]

    def shard_of(self, row: int) -> int:
        """The number of the shard that holds a row."""
        return int(np.searchsorted(self.reader.starts, row, side="right")) - 1

    def where(self, row: int) -> str:
        """Describe a row for messages: its number, its file, a record that shows it, and its scene."""
        i = self.shard_of(row)
        file = self.split.location(i).file.name
        start = int(self.reader.starts[i])
        return f"row {row} ({row - start} of {file}), {self._place_of[row]}, {self._scene_of[row].key}"

    def remedy(self, row: int) -> str:
        """What to do if the file that holds a row is wrong."""
        location = self.split.location(self.shard_of(row))
        return location.remedy.replace("delete it", f"delete {location.file.name}")

    def blocks(self, rows: Int64[np.ndarray, " n"]) -> Iterator[Block]:
        """Yield the rows in the order given, block by block; rows that can't be read are listed as unreadable."""
        for start in range(0, len(rows), BLOCK):
            yield self.block(rows[start : start + BLOCK])

    def block(self, rows: Int64[np.ndarray, " n"]) -> Block:
        """Read the images and masks of `rows` from the store."""
        kept, images, masks, unreadable = [], [], [], []
        for row in rows.tolist():
            try:
                image, mask = self.reader.read(row), self.reader.read(row, "masks")
            except Inaccessible:
                raise
            except UserError as error:
                unreadable.append((row, str(error)))
                continue
            kept.append(row)
            images.append(image)
            masks.append(mask)
        side, rows = self.resolution, np.array(kept, np.int64)
        pixels = np.array(masks, np.uint8).reshape(len(kept), side, side)
        return Block(
            rows=rows,
            scenes=self.scenes(rows),
            images=np.array(images, np.uint8).reshape(len(kept), side, side, 3),
            masks=pixels,
            hidden=hidden_shares(self.areas[rows], pixels),
            unreadable=unreadable,
        )


@dataclass
class Problems:
    """The rows at which one check fails."""

    shown: ShownRows
    first: str = ""
    rows: set[int] = field(default_factory=set)

    def add(self, row: int, what: str) -> None:
        """Add a row at which the check fails, with a description."""
        if not self.rows:
            self.first = f"{self.shown.where(row)}: {what}; {self.shown.remedy(row)}"
        self.rows.add(row)

    def finding(self, name: str, detail: str) -> Finding:
        """Make the finding of this check; `detail` is used if it holds."""
        return Finding(
            CLAIMS[name], not self.rows, f"{len(self.rows)} rows, first {self.first}" if self.rows else detail
        )
