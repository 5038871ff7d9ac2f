"""Sample images with their captions, of any test."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.figures import write_png
from menagerie.generators.storage.pixels import PixelReader, open_split
from menagerie.studies.analysis.words import wrap

matplotlib.use("Agg")
from matplotlib.figure import Figure

SAMPLES = 5


@lru_cache(maxsize=1)  # they are the same in every report of a run
def write_samples(out: Path, split: Path, tests: tuple[str, ...]) -> dict[str, str]:
    """A row of sample images for every subset that has any, as files and as data URIs."""
    sheets, reader = {}, PixelReader(open_split(split))
    for subset in ("train", *tests):
        records = reader.split.subsets.get(subset, ())  # of several files not each has all tests
        if not len(records):
            continue
        chosen = [len(records) * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
        images = list(reader.read_all(records.rows[chosen]))
        captions = [(records.captions[i], records.negatives[i]) for i in chosen]
        file = out / "figures" / f"samples-{file_name(subset)}.png"
        sheets[subset] = write_png(file, sample_sheet(images, captions))
    return sheets


def file_name(subset: str) -> str:
    """The name of a subset as a part of file names: rules hold signs that those may not."""
    return re.sub(r"[^\w.-]+", "-", subset)


def sample_sheet(images: Sequence[UInt8[np.ndarray, "h w 3"]], captions: Sequence[tuple[str, str]]) -> Figure:
    """Images of one size in a row, each with its caption and, in red, its hard negative.

    All in one pair of axes: a pair for each image takes several times as long.
    """
    height, width = images[0].shape[:2]
    gap, lines = width // 16, max(wrap(text).count("\n") + 1 for both in captions for text in both)
    shown, beside = 2.0 * height / (width + 2 * gap), 0.15 * lines + 0.1  # inches of an image and of each text
    figure = Figure((2.0 * len(images), shown + 2 * beside))
    axis = figure.add_axes((0, beside / (shown + 2 * beside), 1, shown / (shown + 2 * beside)))
    axis.axis("off")
    axis.imshow(np.hstack([np.pad(image, ((0, 0), (gap, gap), (0, 0)), constant_values=255) for image in images]))
    for number, (_, both) in enumerate(zip(images, captions, strict=True)):
        middle = (number + 0.5) * (width + 2 * gap)
        for text, y, side, colour in zip(
            both, (-width / 32, height + width / 64), ("bottom", "top"), ("#0a5c2c", "#a01818"), strict=True
        ):
            axis.text(middle, y, wrap(text), fontsize=8, color=colour, ha="center", va=side)
    return figure
