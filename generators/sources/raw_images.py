"""Images stored without compression, many in one file: the binary forms of CIFAR, STL-10 and MNIST, which need no
pickle."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import check_regular, open_file
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.rows import read_foreign_bytes, reading_foreign


class Layout(NamedTuple):
    """How a file stores its images."""

    shape: tuple[int, int, int]
    """Channels, height and width."""
    header: int = 0
    """Bytes before the first image."""
    lead: int = 0
    """Bytes before each image, the last of which is its label."""
    by_column: bool = False
    """Whether each channel is stored column by column, not row by row."""

    @property
    def length(self) -> int:
        """Bytes of an image, including those before it."""
        return self.lead + int(np.prod(self.shape))


LAYOUTS: Mapping[str, Layout] = {
    "cifar-10-batches-bin/test_batch.bin": Layout((3, 32, 32), lead=1),
    "cifar-100-binary/test.bin": Layout((3, 32, 32), lead=2),
    "stl10_binary/test_X.bin": Layout((3, 96, 96), by_column=True),
    "MNIST/raw/t10k-images-idx3-ubyte": Layout((1, 28, 28), header=16),
}


def raw_image_names(root: Path, file: str) -> list[str]:
    """The names of the images in a raw file; raises unless its size is that of a whole number of images."""
    layout = LAYOUTS[file]
    with reading_foreign(root / file):
        size = check_regular(root / file)
    count, rest = divmod(size - layout.header, layout.length)
    if count < 1 or rest:
        raise UserError(f"{root / file} has {size} bytes, no whole number of images; get it again")
    return [f"{file}#{number}" for number in range(count)]


def raw_labels(root: Path, file: str) -> list[int]:
    """The labels of the images in a raw file that stores each before its image (CIFAR's)."""
    layout = LAYOUTS[file]
    return list(read_foreign_bytes(root / file)[layout.header + layout.lead - 1 :: layout.length])


class RawImages(ImageFiles):
    """Reads images by name: an image file, or `FILE#NUMBER` for an image in one of the files in `LAYOUTS`."""

    @classmethod
    def file_of(cls, name: str) -> str:
        file, _, number = name.rpartition("#")
        return file if file in LAYOUTS and number.isdecimal() else name

    def _open(self, index: int) -> Image.Image:
        if (file := self.file_of(self.names[index])) == self.names[index]:
            return super()._open(index)
        pixels = self._pixels(index)
        if LAYOUTS[file].by_column:
            pixels = pixels.swapaxes(1, 2)
        return Image.fromarray(np.ascontiguousarray(pixels.repeat(3 // len(pixels), 0).transpose(1, 2, 0)))

    def _content(self, index: int) -> str:
        if (file := self.file_of(self.names[index])) == self.names[index]:
            return super()._content(index)
        return hashlib.sha256(f"{LAYOUTS[file]} ".encode() + self._pixels(index).tobytes()).hexdigest()

    def _pixels(self, index: int) -> UInt8[np.ndarray, "channels height width"]:
        """An image as the file stores it."""
        file, _, number = self.names[index].rpartition("#")
        layout = LAYOUTS[file]
        with open_file(self.place(file).path) as content:
            content.seek(layout.header + int(number) * layout.length + layout.lead)
            pixels = content.read(layout.length - layout.lead)
        return np.frombuffer(pixels, np.uint8).reshape(layout.shape)
