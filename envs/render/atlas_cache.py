"""Atlas entries on disk: one file each, in a folder named by the hash of everything that determines their pixels."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from menagerie.envs.atlas.entry import Entry, EntryKey
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_arrays

OWNER = "of"  # the array beside those of an entry that says which it is
# Type and number of axes of each array of an entry.
FORMS = {
    **{name: (np.dtype(np.int64), 1) for name in ("corner", "map_corner")},
    **{name: (np.dtype(np.float32), 2) for name in ("depth", "map_depth")},
    **{"alpha": (np.dtype(np.uint8), 2), "light": (np.dtype(np.float32), 3), "colors": (np.dtype(np.uint8), 5)},
    **{"shadow_box": (np.dtype(np.int64), 2), "shadow": (np.dtype(np.uint8), 1)},
}


def entry_path(folder: Path, key: EntryKey) -> Path:
    """The file of the entry of `key`."""
    parts = (key.animal.replace(" ", "_"), key.slot, key.view, *filter(None, (key.size,)))
    return folder / f"{'-'.join(map(str, parts))}.npz"


def write_entry(path: Path, entry: Entry) -> None:
    """Write an entry with the name that it has there, whole or not at all."""
    with whole_file(path) as temporary:
        np.savez(temporary, **entry.arrays(), **{OWNER: owner(path)})


def read_entry(path: Path) -> Entry | None:
    """The entry in a file; None if it is missing, cut short, damaged, of another form or another one under this name,
    or doesn't say which it is, as those of before: then it is rendered anew."""
    try:
        arrays = read_arrays(path)
        if not np.array_equal(arrays.pop(OWNER, None), owner(path)):
            return None
        entry = Entry(**arrays)
    except (Unreadable, TypeError):
        return None
    return entry if is_sound(entry) else None


def owner(path: Path) -> UInt8[np.ndarray, " letters"]:
    """What a file at `path` is, as it says itself: its folder, which is named by what decides pixels, and its key."""
    return np.frombuffer(f"{path.parent.name}/{path.stem}".encode(), np.uint8)


def is_sound(entry: Entry) -> bool:
    """Whether all arrays have the types and sizes that the compositor relies on."""
    if any((array.dtype, array.ndim) != FORMS[name] for name, array in entry.arrays().items()):
        return False
    sides, (_, grounds, *inner, layers) = entry.alpha.shape, entry.colors.shape
    boxes = entry.shadow_box
    return (
        entry.corner.shape == entry.map_corner.shape == (2,)
        and entry.depth.shape == sides == entry.light.shape[:2] == tuple(inner)
        and (entry.light.shape[2], layers) == (3, 6)
        and boxes.shape == (grounds, 4)
        and bool((boxes >= 0).all())
        and len(entry.shadow) == int((boxes[:, 2] * boxes[:, 3]).sum())
    )
