"""Atlas entries on disk: one file each, under a folder named after all that decides pixels."""

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np

from envs.atlas import Entry, EntryKey
from envs.files import whole_file

# These modules compose, check or name; the rest of the package decides an entry's pixels.
_NOT_PIXELS = frozenset(
    [
        "__init__",
        "cache",
        "catalog",
        "check",
        "compositor",
        "errors",
        "files",
        "forward",
        "gallery",
        "pool",
        "renderer",
        "sampling",
        "scene",
        "world",
    ]
)


def identity(version: int, resolution: int, textures: tuple[str, ...], backgrounds: tuple[str, ...]) -> str:
    """A name for all that decides an entry's pixels besides its key: an edited animal changes it."""
    digest = hashlib.sha256(repr((version, resolution, textures, backgrounds)).encode())
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*.py"), key=lambda file: file.relative_to(folder).as_posix()):
        if file.parent != folder or file.stem not in _NOT_PIXELS:
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def entry_path(folder: Path, key: EntryKey) -> Path:
    """Where the entry of `key` is kept."""
    return folder / f"{key.animal.replace(' ', '_')}-{key.slot}-{key.view}.npz"


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
