"""Reads a list of plain values that `numpy.save` has pickled, without running anything that the file names."""

import io
import pickle
from pathlib import Path
from typing import Any

from numpy.lib import format as npy

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.rows import read_foreign_bytes

CONVERT = (
    "where you trust it, write it as JSON lines with image, caption, kind, how and text, and give that file as "
    "--false-captions"
)


class Part:
    """Stands for an array or a type of numpy while a file is read; keeps the state that the file gives it."""

    state: Any = None

    def __init__(self, *_: Any) -> None:
        """Whatever the file says of shape and type is ignored."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


# All that a file may name. None of them is numpy's own.
KNOWN = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): Part for core in ("core", "_core")},
    **dict.fromkeys((("numpy", "ndarray"), ("numpy", "dtype")), Part),
}


class PlainUnpickler(pickle.Unpickler):
    """Builds lists, dictionaries, texts and numbers alone."""

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in KNOWN:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return KNOWN[module, name]


def read_pickled_list(path: Path) -> list[Any]:
    """Read the entries of an array of objects in an .npy file. Raises `UserError` for a file that names anything but
    such an array, and says how to convert it."""
    file = io.BytesIO(read_foreign_bytes(path))
    try:
        version = npy.read_magic(file)
        (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
        found = PlainUnpickler(file).load()
        entries = found.state[-1] if isinstance(found, Part) else found
    except Exception as error:  # a crafted file raises exceptions of many types
        raise UserError(f"{path} is no list of plain values, as CE-CLIP's are ({error!s:.200}); {CONVERT}") from error
    if not isinstance(entries, list):
        raise UserError(f"{path} has {type(entries).__name__} in place of a list; {CONVERT}")
    return entries
