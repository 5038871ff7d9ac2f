"""HDF5 files, opened, mapped and written with clear errors.

HDF5 crashes if it can't write, as on a full disk. So disk space is reserved before HDF5 writes.
"""

import contextlib
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import reserve, whole_file
from menagerie.envs.core.reading import Unreadable, check_accessible, check_regular

# Exceptions of h5py for damaged files, and of our code for the values that h5py then returns.
BROKEN = (OSError, LookupError, ValueError, TypeError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
# The version of the format whose structures HDF5 checks by checksums, and which h5py has read since 2018. Aligned
# columns can be mapped.
LAYOUT = {"libver": ("v110", "v110"), "alignment_threshold": 64, "alignment_interval": 64}
MAPPED_FROM = 1 << 16  # bytes; smaller columns are read, for each map takes a file handle
SPARE = 1 << 20  # bytes that HDF5 may write besides the data
END = slice(28, 36)  # position of the file's length in its first bytes, in HDF5's "superblocks" 2 and 3


def write_hdf5(path: Path, fill: Callable[[h5py.File], object], size: int) -> None:
    """Write a file with the content that `fill` writes, of about `size` bytes, whole or not at all."""
    with whole_file(path) as temporary:
        reserve(temporary, 0, SPARE)  # otherwise even an empty file may find no space
        with h5py.File(temporary, "w", **LAYOUT) as file:
            reserve(temporary, 0, size + SPARE)
            fill(file)
        with temporary.open("rb+") as handle:
            handle.truncate(int.from_bytes(handle.read(END.stop)[END], "little"))


def map_column(group: h5py.Group, name: str) -> np.ndarray:
    """A dataset as a map of its file, read-only; what is small or doesn't lie in one piece is read.

    Raises `ValueError` unless it is a table of numbers or of texts of one width that lies in this file and has as many
    bytes as its shape needs. So the file's size, not a number in a damaged file, limits the memory used.
    """
    table = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(table, h5py.Dataset) or table.external or table.is_virtual or not table.ndim:
        raise ValueError(f"{name} is no table of this file")
    stored = table.id.get_storage_size()
    if table.dtype.kind not in "iubS" or table.nbytes > min(stored, table.file.id.get_filesize()):
        raise ValueError(f"{table.name} has {stored} bytes for the shape {table.shape} of {table.dtype}")
    offset = table.id.get_offset()
    if offset is None or not MAPPED_FROM <= table.nbytes == stored:
        return table[()]
    # The descriptor that HDF5 holds: another file may have been put in this one's place since.
    content = mmap.mmap(table.file.id.get_vfd_handle(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(content, table.dtype, table.size, offset).reshape(table.shape)


def write_attribute(group: h5py.Group, name: str, text: str) -> None:
    """Store a text as an attribute of a group, in one width: HDF5 may hang on damaged texts of variable length."""
    group.attrs.create(name, np.array(text.encode() or b"\0", f"S{max(len(text.encode()), 1)}"))


def read_attribute(group: h5py.Group, name: str) -> str:
    """Read a text attribute of a group; raises `ValueError` if it is anything else."""
    text = group.attrs[name]
    if not isinstance(text, bytes):
        raise ValueError(f"its {name} is no text")
    return text.decode()


@contextlib.contextmanager
def open_hdf5(path: Path, remedy: str) -> Iterator[h5py.File]:
    """Open `path` to read it; raises with `remedy` if it is missing, truncated or of another kind.

    Modules needed for reading must be imported before: an import error inside would be reported as damage.
    """
    if not path.exists() and not path.is_symlink():
        raise UserError(f"there is no file {path}; {remedy}")
    try:
        check_regular(path)
    except Unreadable as error:
        raise UserError(f"{error}; {remedy}") from error
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file
    except UserError as error:
        raise UserError(f"{path}: {error}; {remedy}") if isinstance(error, Unreadable) else error from None
    except BROKEN as error:
        check_accessible(path, error)
        detail = str(error).strip("'\"")
        raise UserError(f"{path} is damaged or not of this project ({detail}); {remedy}") from error
