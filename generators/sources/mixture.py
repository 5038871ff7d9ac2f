"""Data sets made from others: a part of one, and a mixture of several with a share of every batch for each."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned, Indices
from menagerie.generators.captions.templates import Caption


class Mixture(Captioned):
    """Several data sets, one after the other: the indices of part 1 follow those of part 0.

    `strata` has the masks of all parts, False in parts that don't have the mask, and a mask for each part: "part 0",
    "part 1". `shares` is each part's share of a batch. `complete_captions` holds for a whole data set or not at all: a
    mixture of a split with photographs doesn't have it, so only duplicates are excluded from its negatives.
    """

    def __init__(self, parts: Sequence[Captioned], shares: Sequence[float]) -> None:
        """Raises unless the shares sum to 1 and the images of all parts have one size."""
        check_shares(parts, shares)
        check_sizes(parts)
        self.parts = list(parts)
        self.ends = np.cumsum([len(part) for part in parts])
        self.name = f"the mixture of {', '.join(part.name for part in parts)}"
        self.complete_captions = all(part.complete_captions for part in parts)
        self.names = frozenset().union(*(part.names for part in parts))
        self.has_counterfactuals = all(part.has_counterfactuals for part in parts)
        self.text_negatives = tuple(dict.fromkeys(kind for part in parts for kind in part.text_negatives))
        self.shares = {part_name(p): float(share) for p, share in enumerate(shares)}
        self.strata = joined_strata(parts)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return self._join("images", indices)

    def counterfactual_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The counterfactuals' images of `indices`, in order; raises unless all parts have counterfactuals."""
        if not self.has_counterfactuals:
            return super().counterfactual_images(indices)
        return self._join("counterfactual_images", indices)

    def _join(self, images: str, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        none = getattr(self.parts[0], images)([])  # so that an empty batch has the right size
        return torch.cat([none, *(getattr(part, images)([index]) for part, index in self._places(indices))])

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return self.several(indices, draws, 1)[0]

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        return self._lists("several", indices, draws, count)

    def parts_of_captions(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        return self._lists("parts_of_captions", indices, draws, count)

    def _lists(self, several: str, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        places = zip(self._places(indices), draws, strict=True)
        each = [getattr(part, several)([index], [int(draw)], count) for (part, index), draw in places]
        return [[lists[k][0] for lists in each] for k in range(count)]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """The negatives that each index's own part makes with the same draw; None for parts without negatives."""
        places = zip(self._places(indices), draws, strict=True)
        return [part.negatives([index], [int(draw)], kind)[0] for (part, index), draw in places]

    def false_of(
        self, indices: Indices, draws: Indices, captions: Sequence[Caption], kind: str
    ) -> list[Caption | None]:
        places = zip(self._places(indices), draws, captions, strict=True)
        return [part.false_of([index], [int(draw)], [text], kind)[0] for (part, index), draw, text in places]

    def counterfactual_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """Each index's counterfactual in the same part; -1 if there is none."""
        places = zip(indices, self._places(indices), strict=True)
        found = [(int(whole) - index, part.counterfactual_items([index])[0]) for whole, (part, index) in places]
        return np.array([start + item if item >= 0 else -1 for start, item in found], np.int64)

    def texts(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.texts()

    def _places(self, indices: Indices) -> Iterator[tuple[Captioned, int]]:
        """Yield the part of each index, and the index in that part."""
        for index in map(int, indices):
            if not 0 <= index < len(self):
                raise IndexError(f"index {index} of {len(self)} images")
            p = int(np.searchsorted(self.ends, index, side="right"))
            yield self.parts[p], index - int(self.ends[p]) + len(self.parts[p])


def part_name(number: int) -> str:
    """The name of the mask for a part of a mixture."""
    return f"part {number}"


def check_shares(parts: Sequence[Captioned], shares: Sequence[float]) -> None:
    """Raise unless there is a share in 0..1 for each part and they sum to 1."""
    given = ", ".join(f"{share:g}" for share in shares)
    fractions = all(0 <= share <= 1 for share in shares) and math.isclose(sum(shares), 1, abs_tol=1e-6)
    if not parts or len(parts) != len(shares) or not fractions:
        raise UserError(f"a mixture of {len(parts)} needs as many shares, fractions that sum to 1, got {given}")


def check_sizes(parts: Sequence[Captioned]) -> None:
    """Raise unless all parts have images, all of one size."""
    empty = [part.name for part in parts if not len(part)]
    if empty:
        raise UserError(f"{empty[0]} has no images to mix; leave it out")
    sizes = [tuple(part.images([0]).shape[2:]) for part in parts]
    if len(set(sizes)) > 1:
        given = ", ".join(f"{h} x {w} of {part.name}" for part, (h, w) in zip(parts, sizes, strict=True))
        raise UserError(f"a mixture needs images of one resolution, got {given}")


def joined_strata(parts: Sequence[Captioned]) -> Mapping[str, Bool[np.ndarray, " n"]]:
    """The masks of all parts, extended over the mixture, and a mask for each part."""
    names = list(dict.fromkeys(name for part in parts for name in part.strata))
    taken = {part_name(p) for p in range(len(parts))} & set(names)
    if taken:
        raise UserError(
            f"a part of this mixture is a mixture with a {min(taken)!r} of its own; mix all data sets at once"
        )
    inner = {name: [part.strata.get(name, np.zeros(len(part), bool)) for part in parts] for name in names}
    whole = {part_name(p): [np.full(len(part), p == q) for q, part in enumerate(parts)] for p in range(len(parts))}
    return {name: np.concatenate(masks) for name, masks in (inner | whole).items()}


def method_of_whole(name: str) -> Callable[..., Any]:
    """Make the method of `CaptionedSubset` that gives what its whole gives for the same items."""
    return lambda part, indices, *more, **named: getattr(part.whole, name)(part.there(indices), *more, **named)


class CaptionedSubset(Captioned):
    """The items of `whole` at `indices`, in that order, with the same captions."""

    def __init__(self, whole: Captioned, indices: Indices) -> None:
        self.whole, self.indices = whole, np.asarray(indices, np.int64)
        self.name, self.names = whole.name, whole.names
        self.complete_captions, self.text_negatives = whole.complete_captions, whole.text_negatives
        self.strata = {name: mask[self.indices] for name, mask in whole.strata.items()}
        self.has_counterfactuals = bool(
            whole.has_counterfactuals and (self.counterfactual_items(range(len(self))) >= 0).all()
        )

    def __len__(self) -> int:
        return len(self.indices)

    images, counterfactual_images, captions, several, parts_of_captions, negatives, false_of = map(
        method_of_whole,
        ("images", "counterfactual_images", "captions", "several", "parts_of_captions", "negatives", "false_of"),
    )

    def counterfactual_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """For each index, that of its counterfactual in this part; -1 if the part lacks it."""
        place = {int(there): here for here, there in enumerate(self.indices)}
        there = self.whole.counterfactual_items(self.there(indices))
        return np.array([place.get(int(item), -1) for item in there], np.int64)

    def texts(self) -> Iterator[str]:
        """The texts of `whole`, so that a vocabulary made from a part can read the whole data set."""
        return self.whole.texts()

    def there(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """The indices of items in the whole."""
        return self.indices[np.asarray(indices, np.int64)]
