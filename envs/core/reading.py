"""Opens files for reading after a check of their kind and size, and checks the depth and shape of their content.

Only regular files are opened, because a pipe would wait for ever and a device has no end. A fault of the file raises
`Unreadable` with one line that names the file; callers who know its purpose add what to do. An error of the system,
such as a missing permission, says nothing about the content and raises `Inaccessible`.
"""

import codecs
import contextlib
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import remedy

LARGEST_TEXT = 1 << 30  # bytes of a file that is read as one text
LARGEST_RECORD = 64 << 20  # bytes of JSON of ours
LARGEST_TOML = 1 << 20
POINTER = b"version https://git-lfs.github.com/spec/"
LARGEST_POINTER = 1024
DEEPEST = 64  # levels of lists and tables
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device"}
# Errors that concern the path or the bytes behind it. All others concern the system, and may be gone the next time.
FILE_ERRORS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR, errno.EINVAL, errno.ENXIO}

IN_HDF5 = re.compile(r"\berrno = (\d+)")


class Unreadable(UserError, ValueError):
    """Raised for a missing, unfit or damaged file. Also a `ValueError`, for callers that catch those."""


class Inaccessible(UserError):
    """The system refuses to read a file (no permission, no file handle, no memory); the file's content may be fine.

    Not a `ValueError`, so that no caller takes it for damage.
    """


def check_accessible(path: Path, error: BaseException) -> None:
    """Raise `Inaccessible`, which says what to do, if an error in reading `path` concerns the system and not the
    file."""
    if isinstance(error, MemoryError):
        raise Inaccessible(f"{path} can't be read (there is not enough memory){remedy(errno.ENOMEM)}") from error
    named = IN_HDF5.search(str(error))  # h5py may raise other exceptions than `OSError`, whose text has the number
    number = error.errno if isinstance(error, OSError) and error.errno else int(named[1]) if named else 0
    if number and number not in FILE_ERRORS:
        raise Inaccessible(f"{path} can't be read ({os.strerror(number)}){remedy(number)}") from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn system errors while `path` is read into `Inaccessible`, or into `Unreadable` if they concern the file."""
    try:
        yield
    except UserError:
        raise
    except (OSError, MemoryError, ValueError) as error:  # `ValueError` for a name with a zero byte
        check_accessible(path, error)
        raise Unreadable(f"{path} can't be read ({getattr(error, 'strerror', None) or error})") from error


def check_regular(path: Path, most: int | None = None) -> int:
    """Check a file before it is opened, and return its size in bytes; raises if it is missing, no regular file, larger
    than `most` bytes, or a git-lfs pointer."""
    with reading(path):
        state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise Unreadable(f"{path} is no file, but {KINDS.get(stat.S_IFMT(state.st_mode), 'something else')}")
    if most is not None and state.st_size > most:
        raise Unreadable(f"{path} has {state.st_size} bytes, more than {most >> 20} MB")
    if len(POINTER) < state.st_size < LARGEST_POINTER:
        with reading(path), open(path, "rb", buffering=0) as file:
            start = file.read(len(POINTER))
        if start == POINTER:
            raise Unreadable(f"{path} is a git-lfs pointer and not the file: run `git lfs pull` where it was cloned")
    return state.st_size


def open_file(path: Path, most: int | None = None, buffering: int = -1) -> BinaryIO:
    """Open a regular file to read bytes; raises if it has more than `most`."""
    check_regular(path, most)
    with reading(path):
        return open(path, "rb", buffering)


def read_bytes(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """Read a whole regular file; raises if it has more than `most` bytes."""
    with open_file(path, most) as file, reading(path):
        content = file.read()  # with a number, Python would reserve as many bytes
    if len(content) > most:  # it grew in between
        raise Unreadable(f"{path} has more than {most >> 20} MB")
    return content


def read_text(path: Path, most: int = LARGEST_TEXT) -> str:
    """Read a text in UTF-8."""
    try:
        return decode_text(read_bytes(path, most))
    except UnicodeError as error:
        raise Unreadable(f"{path} is no text in UTF-8 ({error}); save it as UTF-8") from error


def decode_text(content: bytes) -> str:
    """A text from its bytes, as `read_text` reads them. Raises `UnicodeError` for anything else."""
    text = content.decode("utf-8-sig")
    if "\0" in text:
        raise UnicodeError("it has zero bytes, as UTF-16 has")
    return text


def read_lines(path: Path, longest: int, most: int, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file of at most `most` bytes, from byte `start` on; a line longer than `longest` comes in
    several parts."""
    with open_file(path, most) as file, reading(path):
        file.seek(start)
        while line := file.readline(longest):
            yield line


def parse_json(text: str | bytes, name: object) -> Any:
    """Parse a JSON text; errors call it `name`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is no JSON ({error})") from error
    check_depth(content, name)
    return content


def decode_json(content: bytes, name: object, shape: Any = Any) -> Any:
    """Parse JSON of others, strictly and fast: `shape` is a type that msgspec knows. Errors call it `name`."""
    import msgspec

    try:
        found = msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8), type=shape)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{name} is not of its form: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is no JSON ({error})") from error
    check_depth(found, name)
    return found


def split_json(content: bytes, name: object, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each entry of a JSON list, or, as `kind` says, of an object; each is decoded by itself
    when its turn comes."""
    import msgspec

    raw = decode_json(content, name, list[msgspec.Raw] if kind is list else dict[str, msgspec.Raw])
    for place, part in raw.items() if isinstance(raw, dict) else ((f"[{k}]", part) for k, part in enumerate(raw)):
        yield place, decode_json(bytes(part), name)


def read_json(path: Path, shape: Any = None, most: int = LARGEST_RECORD) -> Any:
    """Read a JSON file, and check its shape if one is given: a `Struct` of msgspec, dict[str, float], ..."""
    content = parse_json(read_text(path, most), path)
    return content if shape is None else check_shape(content, shape, path)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(path, LARGEST_TOML)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path} is no TOML ({error})") from error
    check_depth(content, path)
    return content


def check_depth(content: Any, name: object) -> None:
    """Raise if lists and tables nest deeper than `DEEPEST`, where recursive code would fail."""
    level = [[content]]
    for _ in range(DEEPEST + 1):
        inner = (part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
        level = [part for part in inner if isinstance(part, dict | list)]
        if not level:
            return
    raise Unreadable(f"{name} nests deeper than {DEEPEST} levels")


def check_shape(content: Any, shape: Any, name: object) -> Any:
    """Return `content` if it has the `shape`, a type that msgspec knows; else raise, naming the unknown key or wrong
    type."""
    import msgspec

    try:
        msgspec.convert(content, shape)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # half a character: "\\ud800"
        raise Unreadable(f"{name} is not of its form: {error}") from error
    return content


def path_inside(folder: Path, name: str) -> Path:
    """The path of the file that data of others call `name`, below a folder; raises for a name that is absolute or
    climbs. Links are followed: the folder's owner has laid them."""
    if name.startswith("/") or "\0" in name or ".." in name.split("/"):
        raise UserError(f"{name!r} leads out of the folder {folder}; do not trust the file that names it")
    return folder / name


def raise_listing_error(error: OSError) -> None:
    raise error


def files_below(folder: Path) -> list[Path]:
    """The files below a folder, sorted, also those behind links to folders; none twice that a circle of links
    repeats."""
    found, seen = [], set()
    for place, folders, files in os.walk(folder, followlinks=True, onerror=raise_listing_error):
        folders.sort(key=lambda name: (os.path.islink(os.path.join(place, name)), name))  # a folder before links to it
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        found += [path for path in (Path(place, file) for file in files) if path.is_file()]
    return sorted(found)


SYSTEM_FILES = frozenset(("__MACOSX", ".DS_Store", ".AppleDouble", "Thumbs.db", "desktop.ini"))
BESIDE_FILES = "._"  # prefix of the files that macOS writes beside others: "._a.jpg"


def is_system_file(path: str | PurePath) -> bool:
    """Whether a path, below a folder or in an archive, is an extra file of macOS or Windows, or in a folder of them."""
    return any(part in SYSTEM_FILES or part.startswith(BESIDE_FILES) for part in PurePath(path).parts)
