"""The share of each object of a scene that others hide, from its pixels in the mask and its area without the others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.scene import MOST_OBJECTS


def hidden_shares(
    areas: Sequence[Sequence[int]], masks: UInt8[np.ndarray, "n h w"]
) -> Float32[np.ndarray, "n objects"]:
    """Return the share 0..1 of each of eight objects that the others hide; NaN where there is no object.

    `areas` are those of `Renderer.areas`; in masks 0 is the background and i + 1 is object i.
    """
    shares = np.full((len(areas), MOST_OBJECTS), np.nan, np.float32)
    for row, whole, mask in zip(shares, areas, masks, strict=True):
        visible = np.bincount(mask.ravel(), minlength=MOST_OBJECTS + 1)[1 : len(whole) + 1]
        row[: len(whole)] = np.clip(1 - visible / np.maximum(whole, 1), 0, 1)
    return shares
