"""Faults of packed files: pictures and texts that are wrong though HDF5 can read them.

A fault changes the images, masks, captions and false captions of a subset in place. Each is planted twice: with the old
digest, and with the digest of the new content, as a bug of the packing code would leave it.
"""

from collections.abc import Callable

import numpy as np

Tables = dict[str, np.ndarray]
Plant = Callable[[Tables], object]
BOTH = ("images", "masks")


def made(change: Callable[[np.ndarray], np.ndarray], *names: str) -> Plant:
    """Change some tables by a function."""
    return lambda tables: tables.update({name: np.ascontiguousarray(change(tables[name])) for name in names})


def put(name: str, index: object, value: object) -> Plant:
    return lambda tables: tables[name].__setitem__(index, value)


def exchanged(*names: str) -> Plant:
    """Exchange the rows with the fewest and with the most objects."""

    def plant(tables: Tables) -> None:
        objects = tables["masks"].max((1, 2))
        i, j = objects.argmin(), objects.argmax()
        for name in names:
            tables[name][[i, j]] = tables[name][[j, i]]

    return plant


def false(value: Callable[[Tables, int], bytes]) -> Plant:
    """Change the first false caption."""

    def plant(tables: Tables) -> None:
        k = np.flatnonzero(tables["false_caption"] != b"")[0]
        tables["false_caption"][k] = value(tables, k)

    return plant


STORE_FAULTS: dict[str, Plant] = {
    "images rolled by a row": made(lambda its: np.roll(its, 1, 0), "images"),
    "images rolled by a pixel": made(lambda its: np.roll(its, 1, 2), "images"),
    "mirrored with masks": made(lambda its: its[:, :, ::-1], *BOTH),
    "a black image": put("images", 7, 0),
    "red for blue": made(lambda its: its[..., ::-1], "images"),
    "images exchanged": exchanged("images"),
    "images and masks exchanged": exchanged(*BOTH),
    "one bit": made(lambda its: its ^ (np.arange(its.size).reshape(its.shape) == 999), "images"),
    "masks exchanged": exchanged("masks"),
    "masks rolled by a pixel": made(lambda its: np.roll(its, 1, 2), "masks"),
    "ids exchanged": made(lambda its: np.array([0, 2, 1], np.uint8)[its], "masks"),
    "a mask of zeros": put("masks", 9, 0),
    "captions rolled": made(lambda its: np.roll(its, 1), "caption"),
    "a letter": made(lambda its: np.char.replace(its, b"a", b"o", 1).astype(its.dtype), "caption"),
    "a false caption that is true": false(lambda tables, k: tables["caption"][k]),
    "no false caption": false(lambda tables, k: b""),
}
INCOMPLETE: dict[str, Plant] = {
    "no images": lambda tables: tables.pop("images"),
    "no masks": lambda tables: tables.pop("masks"),
    "no pictures and texts": lambda tables: tables.clear(),
    "a row less": made(lambda its: its[:-1], *BOTH, "caption", "false_caption"),
}
