"""Scenes and graphs as HDF5 tables, digests of pixels beside them, and HDF5 files opened and written with clear errors.

HDF5 crashes if it can't write, as on a full disk. So small files are made in memory, and for large ones disk space is
reserved before HDF5 writes. Digests of images and masks are computed when these are rendered. A digest covers the scene
too, so that the picture of one scene never passes for another's, not even if both are exchanged together with their
digests.
"""

import contextlib
import errno
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import reserve, whole_file
from menagerie.envs.core.reading import Unreadable, check_accessible, check_regular
from menagerie.envs.scene import Scene
from menagerie.generators.captions.graph import Edge, SceneGraph

PIXELS = ("images", "masks")  # in the order of a row's digests
DIGESTS = "digests"
DIGEST_BYTES = 16
DIGEST = "digest"  # of tables of scenes, stored beside them


def digest_of_table(*tables: np.ndarray) -> str:
    """A hash of several tables, such as the scenes of a shard."""
    hashed = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for table in tables:
        hashed.update(f"{table.shape} {table.dtype}\0".encode() + np.ascontiguousarray(table).tobytes())
    return hashed.hexdigest()


def digest_of(scene: Scene, name: str, pixels: UInt8[np.ndarray, "..."]) -> bytes:
    """The digest of a scene's image or mask; `name` is its table ("images" or "masks")."""
    hashed = hashlib.blake2b(f"{name}\0{scene.key}\0{pixels.shape}\0".encode(), digest_size=DIGEST_BYTES)
    hashed.update(np.ascontiguousarray(pixels))
    return hashed.digest()


def digests_of(
    scenes: Sequence[Scene], images: UInt8[np.ndarray, "n h w 3"], masks: UInt8[np.ndarray, "n h w"]
) -> UInt8[np.ndarray, "n 2 16"]:
    """The digests of n scenes' images and masks."""
    both = [
        digest_of(scene, name, pixels)
        for scene, *shown in zip(scenes, images, masks, strict=True)
        for name, pixels in zip(PIXELS, shown, strict=True)
    ]
    return np.frombuffer(b"".join(both), np.uint8).reshape(len(scenes), len(PIXELS), DIGEST_BYTES)


def write_digests(group: h5py.Group, digests: UInt8[np.ndarray, "n 2 16"]) -> None:
    """Store digests in a shard, with an HDF5 checksum like the pixels'."""
    group.create_dataset(DIGESTS, data=digests, chunks=digests.shape, fletcher32=True)


# Exceptions of h5py for damaged files, and of our code for the values that h5py then returns.
BROKEN = (OSError, LookupError, ValueError, TypeError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
FORMAT = ("v110", "v110")  # format version: HDF5 checks its own structures by checksums, and ours protect the data
SPARE = 1 << 20  # bytes that HDF5 may write besides the data
END = slice(28, 36)  # position of the file's length in its first bytes, in HDF5's "superblocks" 2 and 3
NO_HANDLE = {errno.EMFILE, errno.ENFILE}
Reserve = Callable[[int], None]  # reserves disk space for this many more bytes


def write_hdf5(path: Path, fill: Callable[[h5py.File], object]) -> None:
    """Write a small file with the content that `fill` writes, whole or not at all."""
    content = hdf5_bytes(fill)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def hdf5_bytes(fill: Callable[[h5py.File], object]) -> bytes:
    """The bytes of a new file with the content that `fill` writes, made in memory."""
    with h5py.File("in memory", "w", libver=FORMAT, driver="core", backing_store=False) as file:
        fill(file)
        file.flush()
        return file.id.get_file_image()


@contextlib.contextmanager
def create_hdf5(path: Path) -> Iterator[tuple[h5py.File, Reserve]]:
    """Yield a new file, and a function that reserves space for the next write or raises `OSError` if there is none."""
    kept = 0

    def keep(size: int) -> None:
        nonlocal kept
        if size > kept:
            reserve(path, kept, size - kept)
            kept = size

    keep(SPARE)  # otherwise even an empty file may find no space
    with h5py.File(path, "w", libver=FORMAT) as file:
        kept = 0  # HDF5 has truncated the file
        keep(SPARE)
        yield file, lambda size: keep(file.id.get_filesize() + size + SPARE)
    with path.open("rb+") as handle:
        handle.truncate(int.from_bytes(handle.read(END.stop)[END], "little"))


def open_to_read(path: Path) -> h5py.File:
    """Open an HDF5 file to read it, without a cache of chunks: images are read whole, and a cache keeps megabytes per
    file. Locks are ignored if necessary: our files are replaced, never changed."""
    try:
        return h5py.File(path, "r", rdcc_nbytes=0)
    except OSError as error:
        if error.errno in NO_HANDLE:
            raise
        # Locked, perhaps. Opening without locks right away would conflict with other opens in this process.
        return h5py.File(path, "r", rdcc_nbytes=0, locking=False)


def write_graphs(group: h5py.Group, graphs: Sequence[SceneGraph]) -> None:
    """Write node and edge tables: flat columns, and the start of each graph's rows."""
    edges = [edge for graph in graphs for edge in graph.edges]
    group["nodes"] = text_column([node for graph in graphs for node in graph.nodes])
    group["node_start"] = np.cumsum([0, *(len(graph.nodes) for graph in graphs)])
    group["predicates"] = text_column([edge.predicate for edge in edges])
    group["subjects"] = np.array([edge.subject for edge in edges], dtype="i4")
    group["objects"] = np.array([edge.object for edge in edges], dtype="i4")
    group["edge_start"] = np.cumsum([0, *(len(graph.edges) for graph in graphs)])


def read_graphs(group: h5py.Group) -> list[SceneGraph]:
    """Read graphs that `write_graphs` wrote."""
    nodes, predicates = (read_texts(group, name) for name in ("nodes", "predicates"))
    ends = (read_table(group, name, np.dtype("i4")).tolist() for name in ("subjects", "objects"))
    edges = [Edge(*row) for row in zip(predicates, *ends, strict=True)]
    node_start, edge_start = (read_table(group, name, np.dtype("i8")).tolist() for name in ("node_start", "edge_start"))
    return [
        SceneGraph(tuple(nodes[node_start[i] : node_start[i + 1]]), tuple(edges[edge_start[i] : edge_start[i + 1]]))
        for i in range(len(node_start) - 1)
    ]


def text_column(texts: Sequence[str]) -> np.ndarray:
    """A table of texts, all as wide as the longest, because HDF5 may hang on damaged texts of variable length."""
    letters = [text.encode() for text in texts]
    return np.array(letters, dtype=h5py.string_dtype("utf-8", max(map(len, letters), default=0) or 1))


def read_texts(group: h5py.Group, name: str) -> list[str]:
    """Read a column of texts, checked by `checked_table`."""
    return checked_table(group, name, None).asstr()[:].tolist()


def read_table(group: h5py.Group, name: str, dtype: np.dtype, *sides: int) -> np.ndarray:
    """Read a column, or a table with rows of `sides`, checked by `checked_table`."""
    return checked_table(group, name, dtype, *sides)[:]


def checked_table(group: h5py.Group, name: str, dtype: np.dtype | None, *sides: int) -> h5py.Dataset:
    """The table called `name`, of type `dtype`, or of texts if that is None.

    Raises `ValueError` if it has another type or shape, or fewer bytes than its rows need. So the file's size, not a
    number in a damaged file, limits the memory used.
    """
    table = group[name]
    if not isinstance(table, h5py.Dataset) or table.ndim != 1 + len(sides):
        raise ValueError(f"{table.name} is no table with {1 + len(sides)} axes")
    texts = h5py.check_string_dtype(table.dtype)
    if table.dtype != dtype if dtype else texts is None or texts.length is None:
        raise ValueError(f"{table.name} is no table of {dtype or 'texts'}, but of {table.dtype}")
    stored, size = table.id.get_storage_size(), table.file.id.get_filesize()
    if table.shape[1:] != sides or len(table) * math.prod(sides) * table.id.get_type().get_size() > min(stored, size):
        raise ValueError(f"{table.name} has {stored} bytes in a file of {size} for the shape {table.shape}")
    return table


def write_attribute(group: h5py.Group, name: str, text: str) -> None:
    """Store a text as an attribute of a group."""
    group.attrs[name] = text_column([text])[0]


def read_attribute(group: h5py.Group, name: str) -> str:
    """Read a text attribute of a group; raises `ValueError` if it is anything else."""
    text = group.attrs[name]
    text = text.decode() if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise ValueError(f"its {name} is no text")
    return text


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
        with open_to_read(path) as file:
            yield file
    except UserError as error:
        raise UserError(f"{path}: {error}; {remedy}") if isinstance(error, Unreadable) else error from None
    except BROKEN as error:
        check_accessible(path, error)
        detail = str(error).strip("'\"")
        raise UserError(f"{path} is damaged or not of this project ({detail}); {remedy}") from error
