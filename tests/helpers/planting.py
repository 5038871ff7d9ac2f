"""How faults are planted: the file is written anew with the checksums of what it then holds, as a bug would do it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import h5py
import numpy as np

from menagerie.envs.scene import Scene
from menagerie.generators.audit.regeneration import recipe_of
from menagerie.generators.storage.split_file import Records, Split, read_split, split_name, write_tables
from menagerie.generators.storage.tables import DIGESTS, digests_of


@dataclass(frozen=True)
class StoreFault:
    """A mistake in the pixels, and the claim that it makes fail where digests are those of the wrong pixels.

    `plant` changes the images and masks of a shard in place; it gets its scenes, too.
    """

    plant: Callable[[list[Scene], np.ndarray, np.ndarray], None]
    claim: str

    @property
    def name(self) -> str:
        """For the report of pytest."""
        return self.plant.__name__


def light_file(folder: Path, split: Split) -> Path:
    """Write a split that is in memory, without pixels, under the name of its recipe."""
    path = folder / split_name(recipe_of(split))
    with h5py.File(path, "w") as file:
        write_tables(file, split)
    return path


def plant_in_split(path: Path, plant: Callable[[Split], Split]) -> None:
    """Replace a split file by what `plant` makes of it."""
    rewrite(plant(read_split(path)))


def rewrite(split: Split, links: Mapping[int, str] | None = None) -> None:
    """Write a split over its own file, with a checksum that is right; `links` leads shards elsewhere."""
    split.path.unlink()
    with h5py.File(split.path, "w") as file:
        write_tables(file, split)
        for i, shard in enumerate(split.shards):
            file[f"shards/{i}"] = h5py.ExternalLink((links or {}).get(i, shard.file), "/")


def plant_in_store(path: Path, plant: Callable, digests: bool) -> None:
    """Change the pixels of the first shard of a split's store; with `digests` these are computed again."""
    split = read_split(path)
    with h5py.File(split.location(0).file, "r+") as shard:
        scenes = split.vocabulary.decode(shard["scenes"][:])
        images, masks = shard["images"][:], shard["masks"][:]
        plant(scenes, images, masks)
        shard["images"][:], shard["masks"][:] = images, masks
        if digests:
            shard[DIGESTS][:] = digests_of(scenes, images, masks)


def taken(records: Records, indices: Iterable[int]) -> Records:
    """The records at `indices`, in that order."""
    chosen = list(indices)
    columns = {field.name: getattr(records, field.name) for field in fields(records)}
    return Records(
        **{
            name: its[chosen] if isinstance(its, np.ndarray) else [its[i] for i in chosen]
            for name, its in columns.items()
            if its is not None
        }
    )


def joined(one: Records, other: Records) -> Records:
    """The records of both."""
    columns = ((field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return Records(
        **{
            name: np.concatenate([a, b]) if isinstance(a, np.ndarray) else [*a, *b]
            for name, a, b in columns
            if a is not None
        }
    )


def with_subsets(split: Split, **subsets: Records) -> Split:
    """The split with other records in some subsets."""
    return replace(split, subsets={**split.subsets, **subsets})


def only(split: Split, keep: Callable[[Scene], bool], names: Sequence[str] = ()) -> Split:
    """The split with those records only, of the subsets named or of all but train, whose scenes are to be kept."""
    chosen = names or [name for name in split.subsets if name != "train"]
    kept = {
        name: taken(r, [i for i, scene in enumerate(r.scenes) if keep(scene)])
        for name, r in split.subsets.items()
        if name in chosen
    }
    return with_subsets(split, **kept)
