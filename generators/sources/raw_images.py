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
from menagerie.envs.core.reading import check_regular
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.rows import reading_foreign


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


LAYOUTS: Mapping[str, Layout] = {
    "cifar-10-batches-bin/test_batch.bin": Layout((3, 32, 32), lead=1),
    "cifar-100-binary/test.bin": Layout((3, 32, 32), lead=2),
    "stl10_binary/test_X.bin": Layout((3, 96, 96), by_column=True),
    "MNIST/raw/t10k-images-idx3-ubyte": Layout((1, 28, 28), header=16),
}


def raw_records(path: Path, file: str) -> np.ndarray:
    """The images ("pixels", as they are stored) in a file with the layout of `file`, and the bytes before each
    ("lead"); nothing is read yet. Raises unless the file's size is that of a whole number of images."""
    layout = LAYOUTS[file]
    with reading_foreign(path):
        size = check_regular(path)
    record = np.dtype([("lead", np.uint8, (layout.lead,)), ("pixels", np.uint8, layout.shape)])
    count, rest = divmod(size - layout.header, record.itemsize)
    if count < 1 or rest:
        raise UserError(f"{path} has {size} bytes, no whole number of images; get it again")
    return np.memmap(path, record, "r", layout.header, count)


class RawImages(ImageFiles):
    """Reads images by name: an image file, or `FILE#NUMBER` for an image in one of the files in `LAYOUTS`."""

    @classmethod
    def file_of(cls, name: str) -> str:
        file, _, number = name.rpartition("#")
        return file if file in LAYOUTS and number.isdecimal() else name

    def digest_of(self, index: int) -> str:
        """Hash of the bytes of an image."""
        if (file := self.file_of(self.names[index])) == self.names[index]:
            return super().digest_of(index)
        return hashlib.sha256(f"{LAYOUTS[file]} ".encode() + self._pixels(index).tobytes()).hexdigest()

    def _open(self, index: int) -> Image.Image:
        if (file := self.file_of(self.names[index])) == self.names[index]:
            return super()._open(index)
        pixels = self._pixels(index)
        if LAYOUTS[file].by_column:
            pixels = pixels.swapaxes(1, 2)
        return Image.fromarray(np.ascontiguousarray(pixels.repeat(3 // len(pixels), 0).transpose(1, 2, 0)))

    def _pixels(self, index: int) -> UInt8[np.ndarray, "channels height width"]:
        """An image as the file stores it."""
        file, _, number = self.names[index].rpartition("#")
        return raw_records(self.place(file), file)["pixels"][int(number)]
