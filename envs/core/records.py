"""Our JSON records, each with a digest of itself, and digests of other files: a flipped bit is noticed on reading.

A record is an object whose last key is "digest": SHA-256 of the text before it. The digest may include an owner, the
name of what the record describes, so that a record of another owner is refused.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from menagerie.envs.core.files import write_text
from menagerie.envs.core.reading import (
    LARGEST_RECORD,
    Unreadable,
    check_regular,
    check_shape,
    open_file,
    parse_json,
    read_text,
    reading,
)

KEY, MARK = "digest", "sha256:"
LETTERS = 32  # kept of a SHA-256 in hexadecimal
SEAL = re.compile(rf',?\s*"{KEY}":\s*"({MARK}[0-9a-f]{{{LETTERS}}})"\s*\}}\s*\Z')
TAIL = 200  # characters at the end that hold the digest and no other key


def seal(content: dict[str, Any], indent: int | None = None, context: str = "") -> str:
    """An object as JSON with its digest, which also covers the text `context`, such as the record's owner."""
    text = json.dumps(content, indent=indent)
    head = text[:-1].rstrip()
    gap = "" if head == "{" else "," + (" " if indent is None else "\n" + " " * indent)
    return f'{head}{gap}"{KEY}": "{text_digest(head, context)}"' + ("}" if indent is None else "\n}")


def unseal(text: str, name: object, context: str = "", shape: Any = None) -> Any:
    """Parse a record's text and remove its digest; raises `Unreadable` if that is missing or doesn't fit the text."""
    tail = text[-TAIL:]
    found = SEAL.search(tail)
    if not found:
        raise Unreadable(f"{name} has no digest of itself, as all have that this program writes")
    if text_digest(text[: len(text) - len(tail) + found.start()], context) != found[1]:
        raise Unreadable(f"{name} was changed since it was written")
    content = parse_json(text, name)
    del content[KEY]
    return content if shape is None else check_shape(content, shape, name)


def text_digest(text: str, context: str = "") -> str:
    """The digest of a text."""
    return MARK + hashlib.sha256(f"{context}{text}".encode()).hexdigest()[:LETTERS]


def write_record(path: Path, content: dict[str, Any], indent: int | None = None, owner: str = "") -> None:
    """Write an object with its digest, whole or not at all. The digest covers `owner`, the name of what the record
    describes."""
    write_text(path, seal(content, indent, owner) + ("\n" if indent is not None else ""))


def read_record(path: Path, shape: Any = dict[str, Any], owner: str = "") -> Any:
    """Read an object that `write_record` wrote and check its shape, a type that msgspec knows; raises `Unreadable`."""
    return unseal(read_text(path, LARGEST_RECORD), path, owner, shape)


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write a file with an object on each line, whole or not at all. Every digest covers the number of objects, so that
    a lost line is noticed."""
    every = list(records)
    context = f"{len(every)} "
    write_text(path, "".join(seal(content, context=context) + "\n" for content in every))


def read_records(path: Path, shape: Any = dict[str, Any]) -> list[Any]:
    """Read the objects that `write_records` wrote; raises `Unreadable` if one was changed or is missing."""
    lines = read_text(path).splitlines()
    context = f"{len(lines)} "
    return [unseal(line, f"{path} line {n}", context, shape) for n, line in enumerate(lines, start=1)]


def file_digest(path: Path) -> str:
    """Size and SHA-256 of a file as one word. The result is remembered until the file changes."""
    return f"{check_regular(path)}-{sha256(path).hex()[:LETTERS]}"


def check_digest(path: Path, digest: str) -> None:
    """Raise `Unreadable` unless a file has the digest that `file_digest` gave; a file of another size isn't hashed."""
    if not digest.startswith(f"{check_regular(path)}-") or file_digest(path) != digest:
        raise Unreadable(f"{path} was changed since it was written")


def sha256(path: Path) -> bytes:
    """The SHA-256 of a regular file."""
    check_regular(path)
    state = path.stat()
    return _sha256(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=1024)
def _sha256(path: Path, *state: int) -> bytes:
    with open_file(path) as file, reading(path):
        return hashlib.file_digest(file, "sha256").digest()
