"""How much of each thing of a scene the others hide, from the pixels in its mask and those that it covers alone."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from menagerie.envs.scene import MOST_THINGS

UNKNOWN = -1  # in tables of areas: no thing, or nothing is known of it


def area_table(areas: Sequence[Sequence[int]]) -> Int32[np.ndarray, "n things"]:
    """Areas as `Renderer.areas` gives them, as a table with eight columns."""
    table = np.full((len(areas), MOST_THINGS), UNKNOWN, np.int32)
    for row, of_scene in zip(table, areas, strict=True):
        row[: len(of_scene)] = of_scene
    return table


def visible_pixels(masks: UInt8[np.ndarray, "n h w"]) -> Int32[np.ndarray, "n things"]:
    """The number of pixels of each of eight things in masks: 0 for the background, i + 1 for thing i."""
    return np.stack([(masks == thing + 1).sum((1, 2)) for thing in range(MOST_THINGS)], 1).astype(np.int32)


def hidden_shares(
    areas: Int32[np.ndarray, "n things"], masks: UInt8[np.ndarray, "n h w"]
) -> Float32[np.ndarray, "n things"]:
    """The share 0..1 of each thing that the others hide; NaN for no thing, or one whose area is unknown."""
    whole = np.maximum(areas, 1)
    hidden = np.clip(1 - visible_pixels(masks) / whole, 0, 1).astype(np.float32)
    return np.where(areas == UNKNOWN, np.float32(np.nan), hidden)
