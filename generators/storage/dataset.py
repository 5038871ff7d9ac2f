"""A split as a torch data set."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from menagerie.envs.core.errors import choose
from menagerie.generators.captioned import Captioned, Example, Indices
from menagerie.generators.captions.relations import compound_names
from menagerie.generators.captions.templates import Caption
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES, FalseCaptions
from menagerie.generators.storage.pack import check_intact
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.records import NO_GRAPH, Records
from menagerie.generators.storage.split_file import Split, read_split

PRELOAD_BYTES = 4 << 30


class SplitDataset(Captioned, torch.utils.data.Dataset):
    """One subset of a split file: `SplitDataset("split.h5", "train")[0]` is an `Example`.

    Images are those in the file, else they are composed. Unless `preload` is False, the images of a small subset are
    composed at once, or compared with their digest, and with True those of a large one too. A pickle has no pixels.
    """

    complete_captions = True  # also if a caption is incomplete: graphs are compared by their claims
    text_negatives = TEXT_NEGATIVES

    def __init__(self, path: str | Path | Split, subset: str = "train", preload: bool | None = None) -> None:
        self.split = split = path if isinstance(path, Split) else read_split(Path(path))
        choose(f"subset of {split.path}", subset, split.subsets)
        self.subset = subset
        self.name = f"{subset!r} of {split.path}"
        self.names = compound_names(split.vocabulary)
        self.has_counterfactuals = bool(len(self) and subset != "train" and (self.records.counterfactual >= 0).all())
        self.strata = {"single_object": self.records.number_of_objects == 1}
        self.pictures = SplitPictures(split)
        self._pixels: UInt8[np.ndarray, "n h w 3"] | None = None
        if not len(self) or not split.digest:  # planned, and nowhere on disk
            return
        at_once = preload or 3 * len(self) * split.resolution**2 < PRELOAD_BYTES
        if self.pictures.in_file(subset):
            if at_once:
                check_intact(split, subset)
        elif preload is not False:
            self.pictures.prepare(subset)
            self._pixels = self.pictures.images(subset, range(len(self))) if at_once else None

    def __getstate__(self) -> dict:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("records", "false_captions")}
        return kept | {"_pixels": None}

    @cached_property
    def records(self) -> Records:
        """The records of the subset."""
        return self.split.subsets[self.subset]

    def __len__(self) -> int:
        return len(self.records)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        chosen = np.asarray(indices, np.int64)
        kept = self._pixels
        pixels = self.pictures.images(self.subset, chosen) if kept is None else kept[chosen]
        return torch.from_numpy(pixels).permute(0, 3, 1, 2)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return self.records.true_of(indices)

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """`count` lists of a caption per index: first the recorded ones, then captions of drawn parts of these."""
        make = self.false_captions.contents.parts
        whole, contents = self.captions(indices, draws), self.records.contents_at(np.asarray(indices, np.int64))
        parts = [make(content, count - 1, int(draw)) for content, draw in zip(contents, draws, strict=True)]
        return [whole, *([drawn[k] for drawn in parts] for k in range(count - 1))]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """For each index its hard negative or, of a `kind` other than "swap", a false caption drawn by seed; None if
        there is none."""
        if kind == "swap":
            return self.records.false_of(indices)
        return self.false_of(indices, draws, self.captions(indices, draws), kind)

    def false_of(
        self, indices: Indices, draws: Indices, captions: Sequence[Caption], kind: str
    ) -> list[Caption | None]:
        """For each index a false caption of the kind `replace` or `shuffle`, drawn by seed and made from its caption in
        `captions`; None if there is none."""
        read, draw = self.false_captions.contents.read, self.false_captions.draw
        rows = zip(self.records.contents_at(np.asarray(indices, np.int64)), draws, captions, strict=True)
        return [draw(kind, read(content, text), text.text, int(seed)) for content, seed, text in rows]

    @cached_property
    def false_captions(self) -> FalseCaptions:
        """Makes false captions that don't reveal compositions kept for tests (`storage.false_captions`)."""
        return FalseCaptions(self.split.subsets["train"])

    def counterfactual_items(self, indices: Indices) -> Int[np.ndarray, " n"]:
        """For each index, that of the swapped scene; -1 if this subset lacks it, or if the swap changes nothing."""
        rows = np.asarray(indices, np.int64)
        found = self.records.counterfactual[rows].astype(np.int64)
        return np.where((found == rows) | (found >= len(self)), -1, found)

    def counterfactual_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of the counterfactuals of `indices`, of which the hard negatives are true."""
        if not self.has_counterfactuals:
            return super().counterfactual_images(indices)
        rows = self.records.counterfactual[np.asarray(indices, np.int64)]
        return torch.from_numpy(self.pictures.images(self.subset, rows)).permute(0, 3, 1, 2)

    def texts(self) -> Iterator[str]:
        """Yield the recorded captions and hard negatives, their nodes and predicates. They may use fewer words than the
        subset's world has."""
        return self.records.texts()

    def masks(self, indices: Indices) -> UInt8[Tensor, "n h w"]:
        """The instance masks of `indices`: 0 for the background, i + 1 for the scene's object i."""
        return torch.from_numpy(self.pictures.masks(self.subset, indices))

    def __getitem__(self, index: int) -> Example:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} examples")
        row = [index % len(self)]
        (true,), (false,) = self.records.true_of(row), self.records.false_of(row)
        false = false or Caption("", NO_GRAPH)
        return Example(self.images(row)[0], true.text, false.text, true.graph, false.graph)
