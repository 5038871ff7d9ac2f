"""Converts images in any common form, and images of benchmarks, to the squares that a tower reads."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.pictures import check_picture, picture_error, read_upright, turn_upright
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.captioned import Indices
from menagerie.generators.sources.image_files import square
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import Split
from menagerie.models.scorer import Scorer
from menagerie.models.towers.preparation import Framing

FORMS = "a path, a PIL image, a uint8 array (h, w, 3) or a uint8 tensor (3, h, w), one or several"


def frame_images(images: Any, framing: Framing) -> UInt8[Tensor, "n 3 r r"]:
    """Convert images in any of `FORMS` and frame them for a tower; raises if there are none, or for another form."""
    pictures = [square(picture_of(image), *framing) for image in separate_images(images)]
    if not pictures:
        raise UserError(f"no images; give {FORMS}")
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)


def separate_images(images: Any) -> Sequence[Any]:
    """Make a list from one image, a batch or a list of images."""
    if isinstance(images, str | Path | Image.Image):
        return [images]
    if isinstance(images, np.ndarray | Tensor):
        return [images] if images.ndim == 3 else list(images) if images.ndim == 4 else [images]
    if isinstance(images, Iterable):
        return list(images)
    raise UserError(f"{type(images).__name__} is no image; give {FORMS}")


def picture_of(image: Any) -> Image.Image:
    """Convert one image to a PIL picture in RGB."""
    if isinstance(image, str | Path):
        return picture_in(Path(image))
    if isinstance(image, Image.Image):
        try:
            check_picture(image)
            return turn_upright(image)
        except Exception as error:  # too large, truncated, closed: each raises its own type
            raise UserError(f"an image can't be read: {error}") from error
    if isinstance(image, np.ndarray):
        return Image.fromarray(np.ascontiguousarray(check_pixels(image, image.shape[-1:], "(h, w, 3)")))
    if isinstance(image, Tensor):
        pixels = image.detach().cpu().numpy()
        pixels = check_pixels(pixels, pixels.shape[:1], "(3, h, w)").transpose(1, 2, 0)
        return Image.fromarray(np.ascontiguousarray(pixels))
    raise UserError(f"{type(image).__name__} is no image; give {FORMS}")


def picture_in(path: Path) -> Image.Image:
    """Read the image in a file."""
    if not path.is_file():
        raise UserError(f"there is no image file {path}")
    try:
        return read_upright(path)
    except Exception as error:  # truncated, too large, another format: each raises its own type
        raise UserError(f"the image {path} can't be read ({picture_error(error)})") from error


def check_pixels(pixels: np.ndarray, channels: tuple[int, ...], form: str) -> np.ndarray:
    """Return pixels that are uint8 with three channels; raise for others."""
    if pixels.dtype != np.uint8:
        raise UserError(f"an image of {pixels.dtype}; give uint8 from 0 to 255, neither scaled nor normalised")
    if pixels.ndim != 3 or channels != (3,) or 0 in pixels.shape:
        raise UserError(
            f"an image of shape {pixels.shape}, where {form} is needed: arrays have their channels last, tensors first"
        )
    return pixels


def framing_for(scorer: Scorer) -> Framing:
    """How pictures are cropped and scaled for a scorer."""
    return getattr(scorer.pixel_scale, "framing", None) or Framing(scorer.towers_config.resolution)


def frame_batch(pixels: UInt8[Tensor, "n 3 h w"], framing: Framing) -> UInt8[Tensor, "n 3 r r"]:
    """Frame a batch of images; those of the right size are unchanged."""
    side = framing.resolution
    return pixels if pixels.shape[-2:] == (side, side) else frame_images(pixels, framing)


class FramedSplit(SplitDataset):
    """A subset of a split whose images are framed for a scorer."""

    def __init__(self, path: str | Path | Split, subset: str, framing: Framing) -> None:
        super().__init__(path, subset)
        self.framing = framing

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 r r"]:
        return frame_batch(super().images(indices), self.framing)


def framed_benchmark(
    benchmark: Benchmark, framing: Framing, report: Callable[[int], None] = lambda count: None
) -> Benchmark:
    """The benchmark with images framed for a scorer; `report` gets the number of images at each read."""
    made = copy(benchmark)

    def images(numbers: Sequence[int]) -> UInt8[Tensor, "n 3 r r"]:
        pixels = benchmark.images(numbers)
        report(len(pixels))
        return frame_batch(pixels, framing)

    made.images = images
    return made
