"""The share of each thing of a scene that others hide, from its pixels in the mask and its area without the others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from menagerie.envs.scene import MOST_THINGS

UNKNOWN = -1  # in tables of areas: no thing, or nothing is known of it


def area_table(areas: Sequence[Sequence[int]]) -> Int32[np.ndarray, "n things"]:
    """Return areas, given as `Renderer.areas` returns them, as a table with a column for each of eight things."""
    table = np.full((len(areas), MOST_THINGS), UNKNOWN, np.int32)
    for row, of_scene in zip(table, areas, strict=True):
        row[: len(of_scene)] = of_scene
    return table


def visible_pixels(masks: UInt8[np.ndarray, "n h w"]) -> Int32[np.ndarray, "n things"]:
    """Count the pixels of each of eight things in masks, in which 0 is the background and i + 1 is thing i."""
    return np.stack([(masks == thing + 1).sum((1, 2)) for thing in range(MOST_THINGS)], 1).astype(np.int32)


def hidden_shares(
    areas: Int32[np.ndarray, "n things"], masks: UInt8[np.ndarray, "n h w"]
) -> Float32[np.ndarray, "n things"]:
    """Return the share 0..1 of each thing that the others hide; NaN where there is no thing or its area is unknown."""
    whole = np.maximum(areas, 1)
    hidden = np.clip(1 - visible_pixels(masks) / whole, 0, 1).astype(np.float32)
    return np.where(areas == UNKNOWN, np.float32(np.nan), hidden)
