"""A split as a torch data set."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.envs.core.errors import choose
from menagerie.generators.captioned import Captioned, Example, Indices, all_texts
from menagerie.generators.captions.hard_negatives.false_captions import TEXT_NEGATIVES, FalseCaptions
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.captions.relations import names_in
from menagerie.generators.captions.templates import Caption
from menagerie.generators.storage.pixels import PixelReader, open_split
from menagerie.generators.storage.shared_array import SharedArray
from menagerie.generators.storage.split_file import Records, Split

# A subset with fewer bytes of pixels is read at once, into memory that processes share; a larger one image by image.
PRELOAD_BYTES = 4 << 30


class SplitDataset(Captioned, torch.utils.data.Dataset):
    """One subset of a split file: `SplitDataset("split.h5", "train")[0]` is an `Example`.

    A pickle has no pixels: a process that gets it shares those of the sender, or reads the shards.
    """

    complete_captions = True  # also if a caption is incomplete: graphs are compared by their claims
    text_negatives = TEXT_NEGATIVES

    def __init__(self, path: str | Path | Split, subset: str = "train", preload: bool | None = None) -> None:
        self.split = split = path if isinstance(path, Split) else open_split(Path(path))
        choose(f"subset of {split.path}", subset, split.subsets)
        self.subset = subset
        self.name = f"{subset!r} of {split.path}"
        self.names = names_in(split.vocabulary)
        self.records: Records = split.subsets[subset]
        self.has_partners = bool(len(self) and (self.records.partners >= 0).all())
        self.strata = {"single_object": np.array([len(scene.things) == 1 for scene in self.records.scenes], bool)}
        self.reader = PixelReader(split)
        self._pixels: SharedArray | None = None
        if len(self) and preload is not False:
            first = self.reader.read(int(self.records.rows[0]))
            if preload or first.nbytes * len(self) < PRELOAD_BYTES:
                self._pixels = SharedArray((len(self), *first.shape))
                self.reader.read_all(self.records.rows, out=self._pixels.array)

    def __len__(self) -> int:
        return len(self.records)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        chosen = np.asarray(indices, np.int64)
        loaded = None if self._pixels is None else self._pixels.array
        pixels = self.reader.read_all(self.records.rows[chosen]) if loaded is None else loaded[chosen]
        return torch.from_numpy(pixels).permute(0, 3, 1, 2)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        pairs = zip(indices, draws, strict=True)
        return [Caption(self.records.captions[i], self.records.graphs[i]) for i, _ in pairs]

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """`count` lists of a caption per index: first the recorded ones, then captions of drawn parts of these."""
        contents, scenes = self.false_captions.contents, self.records.scenes
        whole = self.captions(indices, draws)
        read = (contents.read(scenes[i], text) for i, text in zip(indices, whole, strict=True))
        parts = [contents.parts(content, count - 1, int(draw)) for content, draw in zip(read, draws, strict=True)]
        return [whole, *([drawn[k] for drawn in parts] for k in range(count - 1))]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """For each index its recorded hard negative or, of a `kind` other than "swap", a false caption drawn by seed;
        None if there is none.

        In train, negatives that would reveal test compositions are left out (`hard_negatives.false_captions`).
        """
        r, pairs = self.records, list(zip(indices, draws, strict=True))
        if kind != "swap":
            return self.false_of(indices, draws, self.captions(indices, draws), kind)
        recorded = [Caption(r.negatives[i], r.negative_graphs[i]) if r.negatives[i] else None for i, _ in pairs]
        if r is not self.split.subsets["train"]:
            return recorded
        both = zip(pairs, recorded, strict=True)
        return [text and self.false_captions.swapped(r.scenes[i], text) for (i, _), text in both]

    def false_of(
        self, indices: Indices, draws: Indices, captions: Sequence[Caption], kind: str
    ) -> list[Caption | None]:
        """For each index a false caption of the kind `replace` or `shuffle`, drawn by seed and made from its caption in
        `captions`; None if there is none."""
        scenes, drawn = self.records.scenes, self.false_captions.drawn
        return [drawn(kind, scenes[i], text, int(d)) for i, d, text in zip(indices, draws, captions, strict=True)]

    @cached_property
    def false_captions(self) -> FalseCaptions:
        """Makes false captions that don't reveal compositions kept for tests (`hard_negatives.false_captions`)."""
        train = self.split.subsets["train"]
        return FalseCaptions(self.split.recipe, self.split.vocabulary, train.scenes, train.captions)

    def partner_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """For each index, that of the swapped scene; -1 if this subset lacks it, or if the swap changes nothing."""
        return self._partner_items[np.asarray(indices, np.int64)]

    @cached_property
    def _partner_items(self) -> Int64[np.ndarray, " all"]:
        r, swap = self.records, SWAPS[self.split.recipe["kind"]]
        item_of = {scene: i for i, scene in enumerate(r.scenes)}
        several = [len(scene.things) > 1 for scene in r.scenes]
        swapped = [swap(s) if many or text else s for s, many, text in zip(r.scenes, several, r.negatives, strict=True)]
        pairs = zip(r.scenes, swapped, strict=True)
        return np.array([item_of.get(other, -1) if other != scene else -1 for scene, other in pairs], np.int64)

    def partner_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of the partners of `indices`, of which the hard negatives are true."""
        rows = self.records.partners[np.asarray(indices, np.int64)]
        if (rows < 0).any():
            return super().partner_images(indices)
        return torch.from_numpy(self.reader.read_all(rows)).permute(0, 3, 1, 2)

    def texts(self) -> Iterator[str]:
        """Yield the recorded captions and hard negatives, their nodes and predicates. They may use fewer words than the
        subset's world has."""
        r = self.records
        negatives = (Caption(*both) for both in zip(r.negatives, r.negative_graphs, strict=True) if both[0])
        return all_texts(chain(map(Caption, r.captions, r.graphs), negatives))

    def masks(self, indices: Sequence[int]) -> UInt8[Tensor, "n h w"]:
        """The instance masks of `indices`: 0 for the background, i + 1 for the scene's thing i."""
        return torch.from_numpy(self.reader.read_all(self.records.rows[np.asarray(indices)], "masks"))

    def __getitem__(self, index: int) -> Example:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} examples")
        r = self.records
        image = self.images([index])[0]
        return Example(image, r.captions[index], r.negatives[index], r.graphs[index], r.negative_graphs[index])
