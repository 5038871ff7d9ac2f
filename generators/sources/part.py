"""Some items of a data set, as a data set of their own."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.generators.captioned import Captioned, Indices
from menagerie.generators.captions.templates import Caption


class Part(Captioned):
    """The items of `whole` at `indices`, in that order; each has the captions that it has there."""

    def __init__(self, whole: Captioned, indices: Indices) -> None:
        self.whole, self.indices = whole, np.asarray(indices, np.int64)
        self.name, self.names = whole.name, whole.names
        self.complete_captions, self.text_negatives = whole.complete_captions, whole.text_negatives
        self.strata = {name: mask[self.indices] for name, mask in whole.strata.items()}
        self.has_partners = bool(whole.has_partners and (self.partner_items(range(len(self))) >= 0).all())

    def __len__(self) -> int:
        return len(self.indices)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of `indices`."""
        return self.whole.images(self._there(indices))

    def partner_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of their partners."""
        return self.whole.partner_images(self._there(indices))

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        """What the whole gives for these items and draws."""
        return self.whole.captions(self._there(indices), draws)

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """What the whole gives for these items and draws."""
        return self.whole.several(self._there(indices), draws, count)

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """What the whole gives for these items and draws."""
        return self.whole.negatives(self._there(indices), draws, kind)

    def partner_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """The partners that are in this part too."""
        place = {int(there): here for here, there in enumerate(self.indices)}
        there = self.whole.partner_items(self._there(indices))
        return np.array([place.get(int(item), -1) for item in there], np.int64)

    def texts(self) -> Iterator[str]:
        """The texts of the whole, those of other items among them: what reads the part can read all of it."""
        return self.whole.texts()

    def _there(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        return self.indices[np.asarray(indices, np.int64)]
