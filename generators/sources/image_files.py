"""Image files below a folder, or below several folders that replace it, read as squares."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.pictures import check_size, is_turned, open_picture, picture_error, read_array, read_upright
from menagerie.generators.captioned import Indices
from menagerie.generators.sources.folders import SearchedFolders
from menagerie.generators.sources.rows import read_foreign_bytes


class ImageFiles:
    """The images `names` below the folder `root`, each read as a square with a side of `resolution` pixels."""

    remedy = "get it again, or take it out of the data"
    """What to do about an image that can't be read."""

    def __init__(
        self,
        root: str | Path | SearchedFolders,
        names: Sequence[str],
        resolution: int,
        boxes: Sequence[tuple[int, int, int, int] | None] | None = None,
        squashed: bool = False,
        interpolation: str = "bicubic",
        workers: int = 1,
        upright: bool = True,
        as_stored: bool = False,
    ) -> None:
        """Raises unless all files are there.

        `boxes` has, for each name, None or the left, top, width and height of the part that is the image. `squashed`
        and `interpolation` are as in `square`. `workers` threads decode. `upright`: EXIF turns pictures; otherwise
        `turned` gets the names of those that it would turn. `as_stored`: pictures become RGB after they are scaled, not
        before, so palettes are scaled without interpolation, as by open_clip's transform.
        """
        self.folders = root if isinstance(root, SearchedFolders) else SearchedFolders(Path(root))
        self.root, self.names, self.resolution = self.folders.folders[0], names, resolution
        self._places: dict[str, Path] = {}  # of files that lie elsewhere
        self.squashed, self.interpolation, self.workers = squashed, interpolation, workers
        self.upright, self.as_stored, self.turned = upright, as_stored, set[int]()
        self.boxes = {index: box for index, box in enumerate(boxes or ()) if box is not None}
        self._check()

    def __len__(self) -> int:
        return len(self.names)

    def sizes(self) -> Iterator[str]:
        """Yield a text for each image: its file, the file's size in bytes, and its box."""
        for index, name in enumerate(self.names):
            yield f"{name} {self.place(name).stat().st_size} {self.boxes.get(index, '')}"

    def bytes_of(self, index: int) -> int:
        """The size of an image's file."""
        return self.place(self.names[index]).stat().st_size

    def digest_of(self, index: int) -> str:
        """Hash of the bytes of an image's file."""
        return hashlib.sha256(self._bytes(index)).hexdigest()

    def reframe(self, resolution: int, squashed: bool, interpolation: str) -> "ImageFiles":
        """The same images, cropped and scaled in another way."""
        made = copy(self)
        made.resolution, made.squashed, made.interpolation = resolution, squashed, interpolation
        return made

    def place(self, file: str) -> Path:
        return self._places.get(file) or self.root / file

    def read(self, indices: Indices) -> UInt8[Tensor, "n 3 r r"]:
        out = np.empty((len(indices), self.resolution, self.resolution, 3), np.uint8)
        wanted = [range(len(self))[index] for index in indices]
        with ThreadPoolExecutor(self.workers) as threads:  # Pillow decodes without Python's lock; none starts for one
            read = threads.map(self._image, wanted) if self.workers > 1 else map(self._image, wanted)
            for row, pixels in zip(out, read, strict=True):
                row[:] = pixels
        return torch.from_numpy(out).permute(0, 3, 1, 2)

    def _image(self, index: int) -> UInt8[np.ndarray, "r r 3"]:
        return self._read(index, lambda part: square(part, self.resolution, self.squashed, self.interpolation))

    def whole(self, index: int) -> UInt8[np.ndarray, "h w 3"]:
        """An image with all of its pixels, neither cropped nor scaled; if it has a box, the part inside the box."""
        return self._read(index, lambda part: np.array(part.convert("RGB")))

    def _read(self, index: int, pixels: Callable[[Image.Image], np.ndarray]) -> UInt8[np.ndarray, "h w 3"]:
        box = self.boxes.get(index)
        try:
            picture = self._open(index)
            return pixels(picture if box is None else crop_box(picture, *box))
        except UserError:
            raise
        except Exception as error:  # decoders raise exceptions of many types
            problem = f"the image {self.names[index]!r:.200} in {self.folders} can't be read ({picture_error(error)})"
            raise UserError(f"{problem}; {self.remedy}") from error

    def _open(self, index: int) -> Image.Image:
        """The picture of an image, in RGB unless it is to be scaled first."""
        if self.names[index].endswith(".npy"):
            return read_array(self._bytes(index))
        if self.upright:
            return read_upright(self._bytes(index))
        with open_picture(self._bytes(index)) as picture:
            picture.load()
        if is_turned(picture):
            self.turned.add(self.names[index])
        return picture if self.as_stored else picture.convert("RGB")

    def _bytes(self, index: int) -> bytes:
        """The bytes of an image's file."""
        return read_foreign_bytes(self.place(self.names[index]))

    def _check(self) -> None:
        there, _, problem = self.search(self.folders, self.names)
        self._places = {name: path for name, path in there.items() if path != self.root / name}
        if problem:
            raise UserError(f"{problem}; put them there, or name the folder that has them")

    @staticmethod
    def search(folders: SearchedFolders, names: Sequence[str]) -> tuple[dict[str, Path], set[str], str]:
        """The paths of the files that exist, the images whose files don't, and a message about them, empty if there
        are none; raises for a path outside the folders."""
        there = folders.found(set(names))
        lost = [name for name in dict.fromkeys(names) if name not in there]
        if not lost:
            return there, set(), ""
        where = " and ".join(str(folder) for folder, _ in folders.places(lost[0]))
        problem = f"{len(lost)} of {len(set(names))} images are missing in {where}, the first is {lost[0]!r:.200}"
        return there, set(lost), problem


def square(
    picture: Image.Image, resolution: int, squashed: bool = False, interpolation: str = "bicubic"
) -> UInt8[np.ndarray, "r r 3"]:
    """A picture as the square in RGB that a tower reads: the whole of it if `squashed`, else its central square, after
    scaling its shorter side to `resolution` pixels. `interpolation` names one of Pillow's filters."""
    resample = getattr(Image.Resampling, interpolation.upper(), Image.Resampling.BICUBIC)
    if squashed:
        return np.array(picture.resize((resolution, resolution), resample).convert("RGB"))
    shorter = min(picture.size)
    width, height = (resolution * side // shorter for side in picture.size)
    check_size(width, height)  # of a strip
    resized = picture.resize((width, height), resample)
    left, top = round((width - resolution) / 2), round((height - resolution) / 2)
    return np.array(resized.crop((left, top, left + resolution, top + resolution)).convert("RGB"))


def crop_box(picture: Image.Image, left: int, top: int, width: int, height: int) -> Image.Image:
    """The part of a picture inside a box, which may be long and thin; where the box extends beyond the picture, it is
    black. Raises for a box without pixels or with too many."""
    if width < 1 or height < 1:
        raise ValueError(f"its box has {width} x {height} pixels")
    check_size(width, height)
    return picture.crop((left, top, left + width, top + height))
