"""False captions as a file to read and to strike out: one a line as JSON; a line that is deleted is struck out."""

import json
from collections.abc import Iterable
from pathlib import Path

from menagerie.envs.core.files import write_text
from menagerie.generators.false_captions.located import plain_words
from menagerie.generators.false_captions.made import WAYS
from menagerie.generators.false_captions.record import FalseCaption
from menagerie.generators.sources.rows import FileRow, read_json_lines


def write_false_captions(path: Path, captions: Iterable[FalseCaption]) -> None:
    """Write a line for each false caption, in their order."""
    lines = (json.dumps(caption._asdict(), ensure_ascii=False) for caption in captions)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_false_captions(path: Path) -> list[FalseCaption]:
    """Read the lines that are left. Raises `UserError` with file and line for a field that is missing or no text, an
    unknown kind, and a text that is its true caption."""
    return [read_line(row) for row in read_json_lines(path)]


def read_line(row: FileRow) -> FalseCaption:
    """The false caption of a line."""
    found = FalseCaption(*map(row.text, FalseCaption._fields))
    kinds = sorted({way.kind for way in WAYS.values()})
    if found.kind not in kinds:
        raise row.error(f"has the 'kind' {found.kind!r}, which is none of {', '.join(kinds)}")
    if plain_words(found.text) == plain_words(found.caption):
        raise row.error("has a 'text' with the words of its 'caption'")
    return found
