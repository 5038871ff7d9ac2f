"""Reads CSV of unknown origin; errors name file, record and column."""

import ast
import contextlib
import csv
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as shown
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.json_file import LONGEST, LONGEST_TEXT, is_text, read_text

MOST_LITERAL = 100_000  # characters of a cell that is parsed as a list
# Exceptions of Python for a text that is no literal.
NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


class Row(NamedTuple):
    """A record of a CSV file, by column."""

    file: Path
    line: int
    """Number of the record, from 1 for the first one below the header."""
    cells: dict[str, str]

    def error(self, problem: str) -> UserError:
        """Make an error that names this record."""
        return UserError(f"{self.file}: record {self.line} {problem:.{LONGEST}}; correct the file, or get it again")

    def text(self, column: str) -> str:
        """The text in a column, with white space normalised; raises if it is empty."""
        text = " ".join(self.cells[column].split())
        if not text:
            raise self.error(f"has nothing in {column!r}")
        if len(text) > LONGEST_TEXT:
            raise self.error(f"has {len(text)} characters in {column!r}, more than {LONGEST_TEXT}")
        return text

    def whole_number(self, column: str, most: int) -> int:
        """The whole number in a column, from 0 to `most`; raises otherwise."""
        text = self.text(column)
        if not text.isdecimal() or len(text) > 9 or int(text) > most:
            raise self.error(f"has a {column!r} that is no number from 0 to {most}: {shown(text)}")
        return int(text)

    def literal_texts(self, column: str) -> list[str]:
        """The texts of a list in Python's notation; nothing is executed."""
        cell = self.cells[column]
        value = None
        with contextlib.suppress(*NO_LITERAL), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes
            value = ast.literal_eval(cell) if len(cell) <= MOST_LITERAL else None
        if not isinstance(value, list) or not value or not all(map(is_text, value)):
            raise self.error(f"has a {column!r} that is no list of texts: {shown(cell)}")
        return [" ".join(text.split()) for text in value]


def read_csv(path: Path, columns: Sequence[str], by_place: bool = False) -> list[Row]:
    """The records of a CSV file that has these columns, and perhaps others.

    With `by_place` it must have exactly these columns, in this order; the names in its header are ignored.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
        if by_place and len(found := reader.fieldnames or ()) == len(columns):
            reader.fieldnames = columns
        elif by_place:
            raise UserError(
                f"{path} has {len(found)} columns, not {len(columns)}: {shown(found)}; is it the right file?"
            )
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise UserError(
                f"{path} has no column {missing[0]!r}, but {shown(reader.fieldnames)}; is it the right file?"
            )
        rows = [Row(path, line, cells) for line, cells in enumerate(reader, start=1)]
    except csv.Error as error:
        raise UserError(f"{path} is no CSV ({error}); get it again") from error
    for row in rows:
        if None in row.cells or any(row.cells[column] is None for column in columns):
            raise row.error("has more or fewer cells than the file has columns")
    return rows
