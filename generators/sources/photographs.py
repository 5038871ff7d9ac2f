"""What training data is that is opened from a folder of somebody's photographs."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Protocol

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned, Indices


class Pictures(Protocol):
    """Images in files."""

    def __len__(self) -> int: ...

    def read(self, indices: Indices) -> UInt8[Tensor, "n 3 r r"]:
        """The images of `indices`."""

    def sizes(self) -> Iterator[str]:
        """Yield a text for each image: its file and the size of that in bytes."""


class Photographs(Captioned):
    """Photographs with captions. What was left out on the way is counted, and nothing else is left out."""

    files: Pictures
    names_of_images: Sequence[str]
    """For each image a name that is the same in all sources that have the image, where it is known: "COCO 42"."""
    left_out: Mapping[str, int]
    """The number of photographs that were left out, by reason."""
    refused_texts: Mapping[str, int]
    """The number of texts of the remaining photographs that were left out, by reason."""

    def __len__(self) -> int:
        return len(self.names_of_images)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The central squares of the images."""
        return self.files.read(indices)

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """How many "images" and "captions" there are, and what else a source has."""

    @abstractmethod
    def content(self) -> Iterator[str]:
        """All texts and graphs that decide its items, in order."""

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides its items: names of images, sizes of their files, texts and graphs."""
        known = hashlib.sha256(str(len(self)).encode())
        for part in chain(self.names_of_images, self.files.sizes(), self.content()):
            known.update(part.encode(errors="backslashreplace") + b"\0")
        return known.hexdigest()


def some_left(name: str, number: int, left_out: Mapping[str, int]) -> None:
    """Raise where nothing is left to train on."""
    if not number:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it has none"
        raise UserError(f"{name}: no photograph is left to train on ({why}); get the whole data set")
