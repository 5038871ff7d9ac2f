"""What masks must show: the things of their scene, and where they stand."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Float64, UInt8

from envs.checks.scenes import measure
from envs.facing import place_of
from envs.scene import Scene

# Words in the names of places -> the axis of the image along which they come before their opposites.
BEFORE = {"left": ("right", 1), "above": ("under", 0), "upper": ("lower", 0)}


def wrong_ids(scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> Iterator[tuple[int, str]]:
    """The number of each mask that doesn't hold 0 and one id for each thing, and what it holds."""
    for n, (scene, mask) in enumerate(zip(scenes, masks, strict=True)):
        found = np.flatnonzero(np.bincount(mask.reshape(-1), minlength=1)).tolist()
        if found != list(range(len(scene.things) + 1)):
            shown = ", ".join(map(str, found))
            yield n, f"ids {shown} instead of 0 to {len(scene.things)}"


def wrong_places(scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> Iterator[tuple[int, str]]:
    """The number of each mask in which the centres of two things contradict their places, and which do."""
    _, centers = measure(masks, max((len(scene.things) for scene in scenes), default=0))
    for n, scene in enumerate(scenes):
        if contradiction := contradicted(scene, centers[n]):
            yield n, contradiction


def contradicted(scene: Scene, centers: Float[np.ndarray, "things 2"]) -> str:
    """Which things of a scene don't stand as their places say; empty if all do. A centre of NaN contradicts, too."""
    words = [place_of(thing.slot).split() for thing in scene.things]
    for word, (opposite, axis) in BEFORE.items():
        for i in (i for i, own in enumerate(words) if word in own):
            for j in (j for j, other in enumerate(words) if opposite in other):
                if not centers[i, axis] < centers[j, axis]:
                    return f"the {scene.things[i].animal} by its centre is not {word} of the {scene.things[j].animal}"
    return ""


def mean_colors(
    images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"], things: int, fewest: int = 1
) -> Float64[np.ndarray, "n things 3"]:
    """The mean colour of every thing, NaN where its mask has less than `fewest` pixels."""
    n, area = len(images), masks[0].size if len(masks) else 0
    exact = np.float32 if 255 * area < 2**24 else np.float64  # sums of whole numbers
    own = masks.reshape(n, 1, area) == np.arange(1, things + 1)[:, None]
    sums = own.astype(exact) @ images.reshape(n, area, 3).astype(exact)
    pixels = own.sum(2)[..., None]
    return np.where(pixels >= fewest, sums.astype(np.float64) / np.maximum(pixels, 1), np.nan)
