"""Reads JSON of unknown origin; errors name file, position and key."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shown
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, parse_json
from menagerie.envs.core.reading import read_text as read_whole
from menagerie.generators.sources.nearby import or_instead

LONGEST = 300  # characters of a message that quotes a file
LARGEST = 10**9  # limit of numbers in files
LONGEST_TEXT = 100_000  # characters of a text in files: no caption is nearly as long, but a damaged file may have one


class Entry(NamedTuple):
    """An object in a JSON file, with its position for error messages."""

    file: Path
    place: str
    """Position in the file, such as "images[3]"; empty for the outermost object."""
    content: dict[str, Any]

    def error(self, problem: str) -> UserError:
        """Make an error that names this entry."""
        where = " ".join(self.place.split())[:LONGEST] or "it"
        return UserError(f"{self.file}: {where} {problem:.{LONGEST}}; correct the file, or get it again")

    def field(self, key: str, *kinds: type) -> Any:
        """The value under `key`; raises unless its type is one of `kinds`."""
        value = self.content.get(key)
        if key not in self.content:
            raise self.error(f"has no {key!r}")
        if type(value) not in kinds:  # exactly: JSON's true is no number
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"has a {key!r} that is no {wanted}, but {type(value).__name__}")
        return value

    def text(self, key: str) -> str:
        """The text under `key`, with white space normalised; raises if it is empty."""
        text = " ".join(self.field(key, str).split())
        if not text:
            raise self.error(f"has an empty {key!r}")
        if len(text) > LONGEST_TEXT:
            raise self.error(f"has a {key!r} of {len(text)} characters, more than {LONGEST_TEXT}: {shown(text)}")
        if not writable(text):
            raise self.error(f"has a {key!r} with half a character in it: {shown(text)}")
        return text

    def number(self, key: str) -> float:
        """The number under `key`; raises if it is infinite or huge."""
        value = self.field(key, int, float)
        if not abs(value) < LARGEST:  # NaN fails too
            raise self.error(f"has a {key!r} beyond all measure: {shown(value)}")
        return float(value)

    def texts(self, key: str, count: int | None = None) -> tuple[str, ...]:
        """The list of texts under `key`; raises unless it has `count` texts, or, without `count`, at least one."""
        values = self.field(key, list)
        enough = len(values) == count if count else bool(values)
        if not enough or not all(map(is_text, values)):
            wanted = f"{count or 'one or more'} texts of 1 to {LONGEST_TEXT} characters"
            raise self.error(f"has a {key!r} that is no list of {wanted}")
        return tuple(" ".join(text.split()) for text in values)

    def values(self) -> list["Entry"]:
        """The objects in an object of objects, each with its key as position."""
        entries = [Entry(self.file, key, item) for key, item in self.content.items()]
        if halved := next((entry.place for entry in entries if not writable(entry.place)), None):
            raise self.error(f"has a key with half a character in it: {shown(halved)}")
        return [checked(entry) for entry in entries]

    def entries(self, key: str) -> list["Entry"]:
        """The objects in the list under `key`."""
        entries = [Entry(self.file, f"{key}[{i}]", item) for i, item in enumerate(self.field(key, list))]
        return [checked(entry) for entry in entries]


def checked(entry: Entry) -> Entry:
    """Return the entry if it is an object; else raise."""
    if not isinstance(entry.content, dict):
        raise entry.error("is no object")
    return entry


def read_json(path: Path) -> Entry:
    """The outermost object of a JSON file."""
    content = parsed(path, read_text(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object, but {type(content).__name__}; is it the right file?")
    return Entry(path, "", content)


def read_json_list(path: Path) -> list[Entry]:
    """The objects of a JSON file that is a list."""
    content = parsed(path, read_text(path))
    if not isinstance(content, list):
        raise UserError(f"{path} holds no JSON list, but {type(content).__name__}; is it the right file?")
    return [checked(Entry(path, f"[{i}]", item)) for i, item in enumerate(content)]


class Row(NamedTuple):
    """A list inside the outermost list of a JSON file."""

    file: Path
    place: str
    content: list[Any]

    def error(self, problem: str) -> UserError:
        """Make an error that names this list."""
        return UserError(f"{self.file}: {self.place} {problem:.{LONGEST}}; correct the file, or get it again")

    def text(self, index: int) -> str:
        """The text at an index."""
        value = self.content[index]
        if not is_text(value):
            raise self.error(f"has no text of 1 to {LONGEST_TEXT} characters at [{index}], but {shown(value)}")
        return " ".join(value.split())

    def whole_number(self, index: int) -> int:
        """The whole number, 0 or more, at an index; digits in a text are accepted."""
        value = self.content[index]
        number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value
        if type(number) is not int or not 0 <= number < LARGEST:
            raise self.error(f"has no whole number at [{index}], but {shown(value)}")
        return number


def read_json_rows(path: Path, length: int) -> list[Row]:
    """The lists in a JSON file that is a list of lists, each of this length."""
    content = parsed(path, read_text(path))
    if not isinstance(content, list):
        raise UserError(f"{path} holds no JSON list, but {type(content).__name__}; is it the right file?")
    rows = [Row(path, f"[{i}]", item) for i, item in enumerate(content)]
    for row in rows:
        if not isinstance(row.content, list) or len(row.content) != length:
            raise row.error(f"is no list of {length}")
    return rows


def read_json_lines(path: Path) -> list[Entry]:
    """The objects of a file with one per line. Only line feeds end a line, so texts may contain U+2028."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [checked(Entry(path, f"line {n}", parsed(path, line))) for n, line in lines if line.strip()]


def read_text(path: Path) -> str:
    """Read a text file; raises `UserError` if it can't be read."""
    try:
        return read_whole(path)
    except Unreadable as error:
        remedy = "get it again" if path.is_file() else or_instead("name a file that is there", path)
        raise UserError(f"{error}; {remedy}") from error


def parsed(path: Path, text: str) -> Any:
    """Parse the JSON of a file; raises `UserError`."""
    try:
        with without_collection():
            return parse_json(text, path)
    except Unreadable as error:
        raise UserError(f"{error}; get it again") from error


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause Python's garbage collection, which takes two thirds of the time of reading a large file."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def is_text(value: Any) -> bool:
    """Whether a value is a text with at least one word and at most `LONGEST_TEXT` characters that can be encoded
    (`writable`)."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and bool(value.strip()) and writable(value)


def writable(text: str) -> bool:
    """Whether a text can be encoded: it has no lone surrogate (half a character)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
