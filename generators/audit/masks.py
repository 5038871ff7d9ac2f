"""What masks must show: the things of their scene, and where they stand."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Float64, UInt8

from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.generators.storage.scene_checks import measure

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
    means = np.full((len(images), things, 3), np.nan)
    for n, (image, mask) in enumerate(zip(images, masks, strict=True)):  # one by one, as numbers take more memory
        exact = np.float32 if 255 * mask.size < 2**24 else np.float64  # sums of whole numbers
        own = mask.reshape(1, -1) == np.arange(1, things + 1)[:, None]
        pixels = own.sum(1)
        shown = pixels >= fewest
        sums = own[shown].astype(exact) @ image.reshape(-1, 3).astype(exact)
        means[n, shown] = sums.astype(np.float64) / pixels[shown, None]
    return means
