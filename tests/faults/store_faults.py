"""Faults of image stores, an entry each: pixels that are wrong though every checksum of HDF5 is right.

Each is planted twice: with the digests of what was rendered, where the digest must find it, and with digests of the
wrong pixels, as a bug of the renderer would leave them, where the claim here must fail.
"""

import numpy as np

from menagerie.envs.scene import Scene
from tests.helpers.planting import StoreFault


def rolled_by_a_row(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:] = np.roll(images, 1, axis=0)


def rolled_by_a_pixel(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:] = np.roll(images, 1, axis=2)


def mirrored(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:] = images[:, :, ::-1].copy()


def mirrored_with_masks(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:], masks[:] = images[:, :, ::-1].copy(), masks[:, :, ::-1].copy()


def black(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:] = 0


def red_for_blue(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[:] = images[..., ::-1].copy()


def two_exchanged(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    """A red animal and a white one."""
    i, j = one_with("red", scenes), one_with("white", scenes)
    images[[i, j]] = images[[j, i]]


def one_twice(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    images[1], masks[1] = images[0], masks[0]


def masks_of_one_and_two_exchanged(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    i, j = (next(n for n, scene in enumerate(scenes) if len(scene.things) == number) for number in (1, 2))
    masks[[i, j]] = masks[[j, i]]


def masks_rolled_by_a_row(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    masks[:] = np.roll(masks, 1, axis=0)


def masks_rolled_by_a_pixel(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    masks[:] = np.roll(masks, 1, axis=2)


def ids_exchanged(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    masks[:] = np.choose(masks, [0, 2, 1])


def masks_of_zeros(scenes: list[Scene], images: np.ndarray, masks: np.ndarray) -> None:
    masks[:] = 0


def one_with(texture: str, scenes: list[Scene]) -> int:
    """The first scene of one thing in a texture."""
    return next(n for n, s in enumerate(scenes) if len(s.things) == 1 and s.things[0].texture == texture)


SAME = "images and masks are the same when rendered again"

STORE_FAULTS = [
    StoreFault(rolled_by_a_row, SAME),
    StoreFault(rolled_by_a_pixel, SAME),
    StoreFault(mirrored, SAME),
    StoreFault(mirrored_with_masks, "things stand as their places and relations say"),
    StoreFault(black, "no two rows have the same picture"),
    StoreFault(red_for_blue, "things have the colours of their textures"),
    StoreFault(two_exchanged, "things have the colours of their textures"),
    StoreFault(one_twice, "no two rows have the same picture"),
    StoreFault(masks_of_one_and_two_exchanged, "every mask holds its scene's things"),
    StoreFault(masks_rolled_by_a_row, SAME),
    StoreFault(masks_rolled_by_a_pixel, SAME),
    StoreFault(ids_exchanged, "things stand as their places and relations say"),
    StoreFault(masks_of_zeros, "every mask holds its scene's things"),
]
