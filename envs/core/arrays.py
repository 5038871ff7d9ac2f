"""Arrays in .npz files of ours, read so that a damaged one is an error before it takes any memory."""

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from menagerie.envs.core.reading import Unreadable, read_bytes, reading

LARGEST = 1 << 30  # bytes of a file


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that `numpy.savez` wrote, each under the checksum of its zip; raises `Unreadable`.

    No array may be larger than what the file holds of it, none is compressed, and none is of Python's objects.
    """
    try:
        with reading(path), zipfile.ZipFile(io.BytesIO(read_bytes(path, LARGEST))) as archive:
            return {info.filename.removesuffix(".npy"): read_array(archive, info) for info in archive.infolist()}
    except Unreadable:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError, OverflowError) as error:
        raise Unreadable(f"{path} is no file of arrays ({error})") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"{path} is no file of arrays ({error})") from error


def read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array; its checksum is looked at because all of it is read."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > info.compress_size:
        raise ValueError(f"{info.filename} is compressed")
    file = io.BytesIO(archive.read(info))
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_column, dtype = read_header(file)
    left = info.file_size - file.tell()
    if dtype.hasobject or any(side < 0 for side in shape) or int(np.prod(shape, dtype=object)) * dtype.itemsize != left:
        raise ValueError(f"{info.filename} has {left} bytes for an array {shape} of {dtype}")
    flat = np.frombuffer(file.read(), dtype)
    return flat.reshape(shape, order="F" if by_column else "C").copy()
