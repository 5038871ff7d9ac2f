"""Faults of packed files, an entry each: pictures and texts that are wrong though HDF5 can read them.

Each is planted twice: with the digest of what was packed, and with that of what is there, as a bug of the packing code
would leave it. Here `tables` are the images, masks, captions and false captions of train, which are changed in place.
"""

import numpy as np

from menagerie.envs.scene import Scene

Tables = dict[str, np.ndarray]


def rolled_by_a_row(scenes: list[Scene], tables: Tables) -> None:
    tables["images"] = np.roll(tables["images"], 1, axis=0)


def rolled_by_a_pixel(scenes: list[Scene], tables: Tables) -> None:
    tables["images"] = np.roll(tables["images"], 1, axis=2)


def mirrored_with_masks(scenes: list[Scene], tables: Tables) -> None:
    for name in ("images", "masks"):
        tables[name] = tables[name][:, :, ::-1].copy()


def black(scenes: list[Scene], tables: Tables) -> None:
    tables["images"][7] = 0


def red_for_blue(scenes: list[Scene], tables: Tables) -> None:
    tables["images"] = tables["images"][..., ::-1].copy()


def two_exchanged(scenes: list[Scene], tables: Tables) -> None:
    for name in ("images", "masks"):
        tables[name][[2, 3]] = tables[name][[3, 2]]


def one_twice(scenes: list[Scene], tables: Tables) -> None:
    tables["images"][1], tables["masks"][1] = tables["images"][0], tables["masks"][0]


def one_bit(scenes: list[Scene], tables: Tables) -> None:
    tables["images"][5, 3, 3, 1] ^= 1


def masks_of_two_exchanged(scenes: list[Scene], tables: Tables) -> None:
    i, j = (next(n for n, scene in enumerate(scenes) if len(scene.things) == number) for number in (1, 2))
    tables["masks"][[i, j]] = tables["masks"][[j, i]]


def masks_rolled_by_a_pixel(scenes: list[Scene], tables: Tables) -> None:
    tables["masks"] = np.roll(tables["masks"], 1, axis=2)


def ids_exchanged(scenes: list[Scene], tables: Tables) -> None:
    tables["masks"] = np.array([0, 2, 1], np.uint8)[tables["masks"]]


def a_mask_of_zeros(scenes: list[Scene], tables: Tables) -> None:
    tables["masks"][9] = 0


def captions_rolled(scenes: list[Scene], tables: Tables) -> None:
    tables["caption"] = np.roll(tables["caption"], 1)


def a_letter(scenes: list[Scene], tables: Tables) -> None:
    tables["caption"][4] = tables["caption"][4].replace(b"a", b"o", 1)


def a_false_caption_true(scenes: list[Scene], tables: Tables) -> None:
    k = np.flatnonzero(tables["false_caption"] != b"")[0]
    tables["false_caption"][k] = tables["caption"][k]


def a_false_caption_missing(scenes: list[Scene], tables: Tables) -> None:
    tables["false_caption"][np.flatnonzero(tables["false_caption"] != b"")[0]] = b""


def images_missing(scenes: list[Scene], tables: Tables) -> None:
    del tables["images"]


def masks_missing(scenes: list[Scene], tables: Tables) -> None:
    del tables["masks"]


def all_missing(scenes: list[Scene], tables: Tables) -> None:
    tables.clear()


def a_row_missing(scenes: list[Scene], tables: Tables) -> None:
    for name in tables:
        tables[name] = tables[name][:-1]


STORE_FAULTS = [
    rolled_by_a_row,
    rolled_by_a_pixel,
    mirrored_with_masks,
    black,
    red_for_blue,
    two_exchanged,
    one_twice,
    one_bit,
    masks_of_two_exchanged,
    masks_rolled_by_a_pixel,
    ids_exchanged,
    a_mask_of_zeros,
    captions_rolled,
    a_letter,
    a_false_caption_true,
    a_false_caption_missing,
]
INCOMPLETE = [images_missing, masks_missing, all_missing, a_row_missing]
