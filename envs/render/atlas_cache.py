"""Atlas entries on disk: one file each, in a folder named by the hash of everything that determines their pixels."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from envs.atlas.entry import Entry, EntryKey
from envs.common.files import whole_file


def entry_path(folder: Path, key: EntryKey) -> Path:
    """The file of the entry of `key`."""
    parts = (key.animal.replace(" ", "_"), key.slot, key.view, *filter(None, (key.size,)))
    return folder / f"{'-'.join(map(str, parts))}.npz"


def write_entry(path: Path, entry: Entry) -> None:
    """Write an entry, whole or not at all."""
    with whole_file(path) as temporary:
        np.savez(temporary, **entry.arrays())


def read_entry(path: Path) -> Entry | None:
    """The entry in a file; None if it is missing, cut short or damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return Entry(**{name: arrays[name] for name in arrays.files})
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error):
        return None
