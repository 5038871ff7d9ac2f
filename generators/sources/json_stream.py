"""Reads JSON files too large for memory entry by entry: one list of objects, or one object of objects."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, check_depth, encoding_of, open_file
from menagerie.generators.sources.json_file import Entry, checked, writable
from menagerie.generators.sources.nearby import or_instead

CHUNK = 1 << 20  # characters
MOST = 32 << 20  # characters of the longest entry
SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()
BRACKETS = {"[": "list", "{": "object"}


def stream_list(path: Path) -> Iterator[Entry]:
    """Yield the objects of a JSON file that is a list."""
    with Reader(path, "[") as reader:
        for number in reader.places("]"):
            yield checked(Entry(path, f"[{number}]", reader.value()))


def stream_object(path: Path) -> Iterator[Entry]:
    """Yield the objects of a JSON file that is an object of objects, each with its key as position; raises if a key
    occurs twice."""
    seen = set()
    with Reader(path, "{") as reader:
        for number in reader.places("}"):
            key = reader.value()
            if not isinstance(key, str) or not writable(key) or key in seen:
                raise reader.error(f"its key number {number} is no text, or one that was there before")
            seen.add(key)
            reader.expect(":")
            yield checked(Entry(path, key, reader.value()))


class Reader:
    """Reads a JSON file piece by piece, and keeps the text that isn't parsed yet."""

    def __init__(self, path: Path, opening: str) -> None:
        self.path, self.opening = path, opening
        self.text, self.at, self.ended = "", 0, False
        self.file: TextIO

    def __enter__(self) -> "Reader":
        try:
            file = open_file(self.path)
            self.file = io.TextIOWrapper(file, encoding=encoding_of(file.peek(4)))
        except Unreadable as error:
            remedy = "get it again" if self.path.is_file() else or_instead("name a file that is there", self.path)
            raise UserError(f"{error}; {remedy}") from error
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def error(self, problem: str) -> UserError:
        """Make an error that names this file."""
        return UserError(f"{self.path} is no JSON ({problem:.300}); get it again")

    def places(self, closing: str) -> Iterator[int]:
        """Yield the index of each entry, with the reader at the entry's start; then check that the file ends."""
        if self.peek() != self.opening:
            kind = BRACKETS[self.opening]
            raise UserError(f"{self.path} holds no JSON {kind}; is it the right file?")
        self.expect(self.opening)
        number = 0
        while self.peek() != closing:
            if number:
                self.expect(",")
            yield number
            number += 1
        self.expect(closing)
        if self.peek():
            raise self.error(f"there is more behind its {closing}")

    def peek(self) -> str:
        """The next character that isn't white space; empty at the end of the file."""
        while True:
            self.at = SPACE.match(self.text, self.at).end()
            if self.at < len(self.text) or self.ended:
                return self.text[self.at : self.at + 1]
            self.more()

    def expect(self, sign: str) -> None:
        """Skip the character `sign`; raises if another one comes."""
        found = self.peek()
        if found != sign:
            raise self.error(f"{sign!r} expected, but " + (f"{found!r} found" if found else "the file ends"))
        self.at += 1

    def value(self) -> Any:
        """Parse the next value, reading as much as needed."""
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self.text, self.at)
                if end < len(self.text) or self.ended:  # a number at the end of the text may go on
                    self.at = end
                    check_depth(value, self.path)
                    return value
            except Unreadable as error:
                raise UserError(f"{error}; get it again") from error
            except json.JSONDecodeError as error:  # perhaps only because the value isn't complete
                if self.ended or len(self.text) - self.at > MOST:
                    raise self.error(
                        f"{error.msg} in an entry that begins with {self.text[self.at :][:40]!r}"
                    ) from error
            except (ValueError, RecursionError) as error:
                raise self.error(str(error)) from error
            self.more()

    def more(self) -> None:
        """Read more text. Within a long entry, the text that isn't parsed yet doubles each time."""
        try:
            chunk = self.file.read(max(CHUNK, len(self.text) - self.at))
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is no text in UTF-8 ({error}); get it again") from error
        self.text, self.at, self.ended = self.text[self.at :] + chunk, 0, not chunk
