"""Images and masks of a split as arrays: those in its file, else composed from an atlas. Doesn't import torch."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Int, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.render import image_identity
from menagerie.envs.render.occlusion import hidden_shares
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.hdf5 import map_column, open_hdf5, read_attribute
from menagerie.generators.storage.records import single_objects
from menagerie.generators.storage.split_file import PICTURED, REMEDY, Split, check_unreplaced

if TYPE_CHECKING:
    from menagerie.envs.render.renderer import Pictures

CHUNK = 1024  # scenes whose shares are measured at once
Rows = Sequence[int] | Int[np.ndarray, " n"]


def atlas_of(folder: Path, identity: str) -> Path:
    """The folder of the atlas for split files in `folder`: beside it if that is the folder of a world's splits."""
    folder = folder.absolute()
    return folder.parent / "atlas" if folder.name.endswith(identity) else folder


def trusted_name(split: Split) -> str:
    """The world that a split file names. Raises for a world file, which may run Python files, unless the split lies in
    a folder of splits as this program makes them."""
    name = split.recipe["world"]
    if name.endswith(".toml") and not split.path.absolute().parent.name.endswith(split.identity):
        raise UserError(
            f"{split.path} has no pictures, and its world {name} may run Python files; have the file packed where it "
            "was made (menagerie pack), or make it again"
        )
    return name


class SplitPictures:
    """The pictures of a split's rows. A pickle has no pixels: each process opens the file and the atlas itself."""

    def __init__(self, split: Split, world: World | None = None, atlas: Path | None = None) -> None:
        """`world` replaces the one that the file names, and `atlas` the atlas's folder."""
        self.split, self.world, self.side = split, world, split.resolution
        self.atlas = atlas or atlas_of(split.path.parent, split.identity)
        self._maps: dict[str, dict[str, np.ndarray]] = {}

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "renderer"} | {"_maps": {}}

    def in_file(self, subset: str) -> bool:
        """Whether the file holds the pictures of a subset."""
        return bool(self._map(subset))

    def prepare(self, subset: str) -> None:
        """Build what the atlas lacks for a subset, so that processes that start afterwards find it."""
        if not self.in_file(subset):
            self.renderer.prepare(single_objects(self.split.subsets[subset].columns, self.split.vocabulary))

    def images(self, subset: str, rows: Rows) -> UInt8[np.ndarray, "n h w 3"]:
        """The images of some rows."""
        return self._pixels(subset, rows, "images")

    def both(self, subset: str, rows: Rows | slice) -> "Pictures":
        """The images and masks of some rows, composed once for both, whatever the file holds."""
        return self.renderer.render(self.split.subsets[subset].scenes_at(rows))

    def masks(self, subset: str, rows: Rows) -> UInt8[np.ndarray, "n h w"]:
        """The instance masks of some rows: 0 for the background, i + 1 for the scene's object i."""
        return self._pixels(subset, rows, "masks")

    def hidden(self, subset: str, rows: Rows) -> Float32[np.ndarray, "n objects"]:
        """The share of each of up to eight objects of some rows that others hide; NaN for no object."""
        return hidden_of(self.renderer, self.split.subsets[subset].scenes_at(np.asarray(rows, np.int64)))

    def _pixels(self, subset: str, rows: Rows, name: str) -> np.ndarray:
        rows = np.asarray(rows, np.int64)
        if len(rows) and rows.min() < 0:
            raise IndexError(f"row {rows.min()} of {subset!r} in {self.split.path}")
        out = np.empty((len(rows), *(self.side,) * 2, 3)[: 4 if name == "images" else 3], np.uint8)
        for start in range(0, len(rows), CHUNK):
            here, part = slice(start, start + CHUNK), rows[start : start + CHUNK]
            if self.in_file(subset):
                np.take(self._map(subset)[name], part, 0, out[here])
            else:
                out[here] = getattr(self.renderer.render(self.split.subsets[subset].scenes_at(part)), name)
        return out

    @cached_property
    def renderer(self):
        """The renderer of the split's world. Raises if the world isn't here, or has changed since."""
        from menagerie.envs.render.row import renderer_of

        split, world = self.split, self.world or load_world(trusted_name(self.split))
        if image_identity(world, self.side) != split.identity:
            raise UserError(f"world {split.recipe['world']} has changed since {split.path} was made; {REMEDY}")
        return renderer_of(world, self.side, self.atlas)

    def _map(self, subset: str) -> dict[str, np.ndarray]:
        if subset not in self._maps:
            self._maps[subset] = map_pictures(self.split, subset)
        return self._maps[subset]


def map_pictures(split: Split, subset: str) -> dict[str, np.ndarray]:
    """Map the pictures and texts of a subset that a packed file holds; empty if it holds none."""
    n, side = len(split.subsets[subset].columns["view"]), split.resolution
    with open_hdf5(split.path, REMEDY) as file:
        check_unreplaced(split.path, read_attribute(file, "digest"), split.digest)
        found = {name: map_column(file[subset], name) for name in PICTURED if name in file[subset]}
        shapes = {"images": (n, side, side, 3), "masks": (n, side, side)}
        if found and any(name not in found or len(found[name]) != n for name in PICTURED):
            raise ValueError(f"the pictures and texts of {subset} are incomplete")
        if any(name in found and found[name].shape != shape for name, shape in shapes.items()):
            raise ValueError(f"the pictures of {subset} have another size than {side}")
    return found


def too_hidden(renderer, planned: Mapping[str, Sequence[Scene]], least_visible: float) -> dict[str, list[int]]:
    """For each subset, the numbers of its scenes in which less than `least_visible` of some object shows; subsets
    without any are left out. A swap hides as much as its scene, for textures change no outline."""
    left = {}
    for name, scenes in planned.items() if least_visible else ():
        hidden = (np.nan_to_num(hidden_of(renderer, scenes)) > 1 - least_visible).any(1)
        if hidden.any():
            left[name] = np.flatnonzero(hidden).tolist()
    return left


def hidden_of(renderer, scenes: Sequence[Scene]) -> Float32[np.ndarray, "n objects"]:
    """The share of each of up to eight objects of scenes that others hide; NaN for no object."""
    parts = [np.empty((0, 8), np.float32)]
    for start in range(0, len(scenes), CHUNK):
        part = scenes[start : start + CHUNK]
        masks = renderer.render(part).masks
        parts.append(hidden_shares(renderer.areas(part), masks))
    return np.concatenate(parts)
