"""The base of training data made of photographs in a user's folder."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned, Indices
from menagerie.generators.sources.image_files import ImageFiles


class Photographs(Captioned):
    """Photographs with captions; all photographs and texts left out are counted."""

    files: ImageFiles
    names_of_images: Sequence[str]
    """Name of each image, the same in all sources that have the image, if that is known: "COCO 42"."""
    left_out: Mapping[str, int]
    """Number of photographs left out, by reason."""
    refused_texts: Mapping[str, int]
    """Number of texts and relations left out, by reason."""
    listed: bool = True
    """Whether `texts_of` gives the captions; otherwise these are made anew in each step."""

    def __len__(self) -> int:
        return len(self.names_of_images)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The central squares of the images."""
        return self.files.read(indices)

    def texts_of(self, index: int) -> Iterable[str]:
        """The texts that the captions of an image are, or are made of."""
        return [caption.text for caption in self.captions([index], [0])]

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The number of "images" and "captions", and of other objects that a source has."""

    @abstractmethod
    def content(self) -> Iterator[str]:
        """Yield all texts and graphs that decide the data's items, in order."""

    @cached_property
    def identity(self) -> str:
        """A hash of what items are made from: names of images, sizes of their files (not bytes), texts and graphs."""
        known = hashlib.sha256(str(len(self)).encode())
        for part in chain(self.names_of_images, self.files.sizes(), self.content()):
            known.update(part.encode(errors="backslashreplace") + b"\0")
        return known.hexdigest()


def check_some_left(name: str, number: int, left_out: Mapping[str, int]) -> None:
    """Raise if no photographs are left to train on."""
    if not number:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it has none"
        raise UserError(f"{name}: no photograph is left to train on ({why}); get the whole data set")
