"""Tar shards in webdataset's form, such as CC12M's (Changpinyo et al. 2021): images with alternative texts.

Shards are read in place. Samples that can't be trained on are left out and counted: those without an image or a
caption, with images of other formats or too large, with JPEGs cut short, and with captions that contain HTML; also
links and devices. Of two files with one name and kind the first is taken; of several images in one sample a JPEG if
there is one, else a PNG. A shard that is cut short raises an error. So does an image that fails only when it is
decoded: to leave it out, write the key that the error names into `left_out.txt` beside the shards, one key per line
("00000.tar/00012").
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_system_file, open_file, reading
from menagerie.generators.captioned import Indices, all_texts
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.kept_out import FLICKR, KeptOut, PhotographId
from menagerie.generators.sources.photographs import Photographs, check_some_left
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.sources.rows import read_foreign_text, reading_foreign
from menagerie.generators.sources.shard_index import Index, indexes
from menagerie.generators.sources.texts import Texts, graphs_of

FOLDER, LEFT_OUT = "shards", "left_out.txt"


class ShardImages(ImageFiles):
    """Reads images in tar shards by position."""

    remedy = f"get its shard again, or write its name into {LEFT_OUT} there"

    def __init__(
        self,
        shards: Sequence[Path],
        owners: Int64[np.ndarray, " n"],
        positions: Int64[np.ndarray, "n 2"],
        names: Texts,
        resolution: int,
    ) -> None:
        """Image i is in shard `owners[i]`; `positions` has each image's offset and size in bytes."""
        self.shards, self.owners, self.positions = shards, owners, positions
        super().__init__(shards[0].parent, names, resolution)

    def _check(self) -> None:
        """The indexes name only images that are there."""

    def sizes(self) -> Iterator[str]:
        """Yield a text for each image: its name and its size in bytes."""
        return (f"{name} {size}" for name, size in zip(self.names, self.positions[:, 1].tolist(), strict=True))

    def bytes_of(self, index: int) -> int:
        """The size of an image's file in its shard."""
        return int(self.positions[index, 1])

    def _bytes(self, index: int) -> bytes:
        (offset, size), shard = self.positions[index].tolist(), self.shards[int(self.owners[index])]
        with reading_foreign(shard), open_file(shard) as file, reading(shard):
            file.seek(offset)
            return file.read(size)


class TarShards(Photographs):
    """The samples in all .tar files of a folder, in the order of the files' names: `TarShards(place)`."""

    def __init__(self, place: Place) -> None:
        """Read all shards, or their saved indexes. Raises if there are none, and for a shard that is cut short."""
        place.kept_out.require(FLICKR)
        place.recipe(tuple(SOURCE.recipes))
        folder = place.path(FOLDER)
        shards = sorted(path for path in folder.glob("*.tar") if path.is_file() and not is_system_file(path.name))
        if not shards:
            raise UserError(f"there are no .tar files in {folder}; put uncompressed shards there")
        self.name = f"the shards in {folder}"
        found = indexes(shards)
        names = [f"{shard.name}/{key}" for shard, index in zip(shards, found, strict=True) for key in index.keys]
        kept, self.left_out = select_samples(found, names, keys_left_out(folder / LEFT_OUT, names), place.kept_out)
        check_some_left(self.name, int(kept.sum()), self.left_out)
        self.refused_texts: dict[str, int] = {}
        self.names_of_images = Texts(name for name, keep in zip(names, kept, strict=True) if keep)
        texts = (text for index in found for text in index.texts)
        self.captions_texts = Texts(text for text, keep in zip(texts, kept, strict=True) if keep)
        self.graphs = None if place.parse is one_node else graphs_of(list(self.captions_texts), place.parse)
        owners = np.repeat(np.arange(len(shards)), [len(index.keys) for index in found])[kept]
        places = np.concatenate([np.stack([index.offsets, index.sizes], 1) for index in found])[kept]
        self.files = ShardImages(shards, owners, places, self.names_of_images, place.resolution)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self._caption(range(len(self))[index]) for index, _ in zip(indices, draws, strict=True)]

    def _caption(self, index: int) -> Caption:
        text = self.captions_texts[index]
        return Caption(text, self.graphs[index] if self.graphs is not None else one_node(text))

    def texts(self) -> Iterator[str]:
        return all_texts(map(self._caption, range(len(self))))

    def counts(self) -> dict[str, int]:
        return {"images": len(self), "captions": len(self), "shards": len(self.files.shards)}

    def content(self) -> Iterator[str]:
        return (repr(self._caption(index)) for index in range(len(self)))


def select_samples(
    found: Sequence[Index], names: Sequence[str], listed: frozenset[str], kept_out: KeptOut
) -> tuple[Bool[np.ndarray, " n"], dict[str, int]]:
    """Choose the samples to use; returns a mask, and the number left out by reason."""
    left_out = sum((Counter(index.refused) for index in found), Counter())
    kept = np.ones(len(names), bool)
    numbers = np.concatenate([index.flickr for index in found])
    for k, (name, number) in enumerate(zip(names, numbers.tolist(), strict=True)):
        reason = kept_out.reason([PhotographId(FLICKR, number)]) if number else ""
        reason = reason or (f"in {LEFT_OUT}" if name in listed else "")
        if reason:
            kept[k] = False
            left_out[reason] += 1
    return kept, dict(left_out)


def keys_left_out(path: Path, names: Sequence[str]) -> frozenset[str]:
    """The sample keys listed in a file, if it exists; raises for a key that no shard has."""
    if not path.exists():
        return frozenset()
    wanted = frozenset(filter(None, (line.strip(" \t\r") for line in read_foreign_text(path).split("\n"))))
    unknown = sorted(wanted - set(names))
    if unknown:
        raise UserError(f"{path} lists {unknown[0]!r:.200}, which no shard has; write SHARD.tar/KEY, one a line")
    return wanted


SOURCE = SourceSpec(
    name="tar shards",
    open=TarShards,
    images=(FOLDER,),
    image_folders=(FOLDER,),
    get="CC12M: github.com/google-research-datasets/conceptual-12m lists addresses, which img2dataset makes shards of",
    licence="CC12M: free for any use, as is; images: their owners' terms",
)
