"""Reads JSON, CSV and texts of others. Errors name the file, the place in it and the key."""

import ast
import contextlib
import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from reprlib import repr as shown
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, decode_json, read_bytes, read_text, split_json

LONGEST = 300  # characters of a message that quotes a file
LARGEST = 10**9  # limit of numbers in files
LONGEST_TEXT = 100_000  # characters of a text in files: no caption is nearly as long, but a damaged file may have one
MOST_STREAMED = 4 << 30  # bytes of a file whose entries are decoded one by one
MOST_LITERAL = 100_000  # characters of a cell that is parsed as a list
# Exceptions of Python for a text that is no literal.
NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


class FileRow(NamedTuple):
    """An object or a list in a JSON file, or a record of a table, with its place for error messages."""

    file: Path
    place: str
    """Position in the file, such as "images[3]" or "record 7"; empty for the outermost object."""
    content: Any
    """Values by key, or by index."""

    def error(self, problem: str) -> UserError:
        """Make an error that names this row."""
        where = " ".join(self.place.split())[:LONGEST] or "it"
        return UserError(f"{self.file}: {where} {problem:.{LONGEST}}; correct the file, or get it again")

    def field(self, key: str | int, *kinds: type) -> Any:
        """The value under `key`; raises unless its type is one of `kinds`."""
        if isinstance(self.content, dict) and key not in self.content:
            raise self.error(f"has no {key!r}")
        value = self.content[key]
        if type(value) not in kinds:  # exactly: JSON's true is no number
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"has a {key!r} that is no {wanted}, but {type(value).__name__}")
        return value

    def text(self, key: str | int) -> str:
        """The text under `key`, with white space normalised; raises if it is empty or far too long."""
        text = " ".join(self.field(key, str).split())
        if not 0 < len(text) <= LONGEST_TEXT:
            raise self.error(f"has a {key!r} of {len(text)} characters, not of 1 to {LONGEST_TEXT}: {shown(text)}")
        return text

    def file_name(self, key: str | int) -> str:
        """The last part of the path under `key`, without the folders of the machine that wrote it."""
        return self.text(key).rpartition("/")[2]

    def texts(self, key: str | int, count: int | None = None) -> tuple[str, ...]:
        """The list of texts under `key`; raises unless it has `count` texts, or, without `count`, at least one.

        A cell of a table has a list in Python's notation, of which nothing is executed."""
        values = self.field(key, list, str)
        values = parse_literal(values) if isinstance(values, str) else values
        enough = isinstance(values, list) and (len(values) == count if count else bool(values))
        if not enough or not all(map(is_text, values)):
            wanted = f"{count or 'one or more'} texts of 1 to {LONGEST_TEXT} characters"
            raise self.error(f"has a {key!r} that is no list of {wanted}")
        return tuple(" ".join(text.split()) for text in values)

    def number(self, key: str) -> float:
        """The number under `key`; raises if it is huge."""
        value = self.field(key, int, float)
        if not abs(value) < LARGEST:
            raise self.error(f"has a {key!r} beyond all measure: {shown(value)}")
        return float(value)

    def whole_number(self, key: str | int, most: int = LARGEST) -> int:
        """The whole number under `key`, from 0 to `most`; digits in a text are accepted."""
        value = self.field(key, int, str)
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20 else value
        if type(number) is not int or not 0 <= number <= most:
            raise self.error(f"has a {key!r} that is no whole number from 0 to {most}: {shown(value)}")
        return number

    def nested(self, key: str | int) -> "FileRow":
        """The object under `key`."""
        return FileRow(self.file, f"{self.place}.{key}".lstrip("."), self.field(key, dict))

    def rows(self, key: str) -> list["FileRow"]:
        """The objects in the list under `key`."""
        start = f"{self.place}.{key}".lstrip(".")
        return [check_object(FileRow(self.file, f"{start}[{k}]", item)) for k, item in enumerate(self.field(key, list))]


def check_object(row: FileRow) -> FileRow:
    """Return a row if it is an object; else raise."""
    if not isinstance(row.content, dict):
        raise row.error("is no object")
    return row


def read_json_object(path: Path) -> FileRow:
    """The outermost object of a JSON file."""
    with reading_foreign(path):
        return FileRow(path, "", decode_json(read_bytes(path), path, dict[str, Any]))


def read_entries(path: Path, kind: type) -> Iterator[FileRow]:
    """Yield the objects of a JSON file that is a list of objects or, as `kind` says, an object of them, whose keys are
    then their places. One at a time is decoded: all of them take twenty times the file's size."""
    with reading_foreign(path):
        for place, content in split_json(read_bytes(path, MOST_STREAMED), path, kind):
            yield check_object(FileRow(path, place, content))


def read_lists(path: Path, length: int) -> Iterator[FileRow]:
    """Yield the lists in a JSON file that is a list of lists, each of this length."""
    with reading_foreign(path):
        for place, content in split_json(read_bytes(path), path, list):
            row = FileRow(path, place, content)
            if not isinstance(content, list) or len(content) != length:
                raise row.error(f"is no list of {length}")
            yield row


def read_json_lines(path: Path) -> Iterator[FileRow]:
    """Yield the objects of a file with one per line. Only line feeds end a line, so texts may contain U+2028."""
    with reading_foreign(path):
        for number, line in enumerate(read_text(path).split("\n"), start=1):
            if line.strip():
                yield check_object(FileRow(path, f"line {number}", decode_json(line.encode(), path)))


def read_csv(path: Path, columns: Sequence[str], delimiter: str = ",") -> list[FileRow]:
    """The records of a CSV file that has these columns, and perhaps others."""
    try:
        reader = csv.DictReader(io.StringIO(read_foreign_text(path), newline=""), strict=True, delimiter=delimiter)
        found = reader.fieldnames or ()
        if missing := [column for column in columns if column not in found]:
            raise UserError(f"{path} has no column {missing[0]!r}, but {shown(found)}; is it the right file?")
        rows = [FileRow(path, f"record {number}", cells) for number, cells in enumerate(reader, start=1)]
    except csv.Error as error:
        raise UserError(f"{path} is no CSV ({error}); get it again") from error
    for row in rows:
        if None in row.content or any(row.content[column] is None for column in columns):
            raise row.error("has more or fewer cells than the file has columns")
    return rows


def read_foreign_text(path: Path) -> str:
    """Read a text file; raises `UserError` if it can't be read."""
    with reading_foreign(path):
        return read_text(path)


def read_foreign_bytes(path: Path) -> bytes:
    """Read a file; raises `UserError` if it can't be read."""
    with reading_foreign(path):
        return read_bytes(path)


@contextlib.contextmanager
def reading_foreign(path: Path) -> Iterator[None]:
    """Turn `Unreadable` into a `UserError` that says what to do about `path`, a file of others."""
    try:
        yield
    except Unreadable as error:
        remedy = "get it again" if path.is_file() else "name a file that is there"
        raise UserError(f"{error}; {remedy}") from error


def parse_literal(cell: str) -> Any:
    """The value that a text states in Python's notation; None if it states none."""
    with contextlib.suppress(*NO_LITERAL), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes
        return ast.literal_eval(cell) if len(cell) <= MOST_LITERAL else None
    return None


def is_text(value: Any) -> bool:
    """Whether a value is a text with at least one word and at most `LONGEST_TEXT` characters that can be encoded."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and bool(value.strip()) and writable(value)


def writable(text: str) -> bool:
    """Whether a text can be encoded: it has no lone surrogate (half a character), as names of files may have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
