"""Atlas entries on disk: one file each, under a folder named after all that decides pixels."""

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np

from envs.atlas import Entry, EntryKey
from envs.files import whole_file
from envs.world import World

# These modules check, name or tell; the rest of the package decides pixels.
_NOT_PIXELS = frozenset(
    [
        "__init__",
        "cache",
        "catalog",
        "check",
        "cycles",
        "errors",
        "files",
        "forward",
        "gallery",
        "sheets",
        "version",
        "witness",
        "witness_check",
        "own_ingredients",
        "own_world",
        "placement_check",
        "physics",
        "render_checks",
        "sampling",
        "scene",
        "world",
    ]
)
# These put entries together: they decide an image's pixels, but not an entry's.
_NOT_ENTRIES = _NOT_PIXELS | {"compositor", "pool", "renderer"}


def identity(resolution: int, world: World) -> str:
    """A name for all that decides an entry's pixels besides its key: an edited animal changes it."""
    return source_digest(_NOT_ENTRIES, resolution, world.textures, world.backgrounds, world.own)


def image_identity(world: World, resolution: int) -> str:
    """A name for all that decides the images of a world; the renderer's version is its source."""
    return source_digest(_NOT_PIXELS, resolution, world)


def source_digest(left_out: frozenset[str], *settings: object) -> str:
    """Hash of `settings` and of this package's source but for the modules in `left_out`."""
    digest = hashlib.sha256(repr(settings).encode())
    folder = Path(__file__).parent
    files = [*folder.rglob("*.py"), folder / "poses.json"]
    for file in sorted(files, key=lambda file: file.relative_to(folder).as_posix()):
        if file.parent != folder or file.stem not in left_out:
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def entry_path(folder: Path, key: EntryKey) -> Path:
    """Where the entry of `key` is kept."""
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
