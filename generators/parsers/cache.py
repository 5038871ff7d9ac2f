"""Graphs of captions on disk, so that nothing is parsed twice, whoever was killed in between."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text, writing
from menagerie.envs.core.identity import digest
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable, read_lines
from menagerie.envs.core.records import sealed, unsealed
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import NotAGraph, as_json, from_json

LONGEST, LARGEST = 1 << 20, 16 << 30  # bytes of a line and of the file
Entry = tuple[SceneGraph | None, str]  # a graph, or why there is none


class ParseCache:
    """The answers of one parser: a folder with `parser.json`, its identity, and `graphs.jsonl`, a line a caption.

    Which folder below `root` follows from the identity, so another prompt or model has another one. Lines are only
    added, each in one write with a digest, also by several processes at once; what a killed one left half-written, or
    the disk changed, is passed over and parsed anew, and so are lines that were copied from another parser's folder.
    """

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        """Reads what is there; raises `UserError` where the folder can't be written."""
        self.folder = root / f"{name}-{digest(identity)}"
        self.damaged = 0
        """Lines that were passed over."""
        self._entries: dict[str, Entry] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / "parser.json").exists():
                write_text(self.folder / "parser.json", json.dumps(dict(identity), indent=1))
            self._lock = FileLock(self.folder / "lock")
            self._read()
        except OSError as error:
            raise UserError(f"{self.folder} can't be written ({error.strerror}); choose another --parses") from error

    @property
    def path(self) -> Path:
        """The file of lines."""
        return self.folder / "graphs.jsonl"

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, caption: str) -> Entry | None:
        """What is known of a caption; None where that is nothing."""
        return self._entries.get(caption)

    def add(self, caption: str, graph: SceneGraph | None, problem: str = "") -> None:
        """Keep a graph, or why there is none."""
        what = as_json(graph) if graph else {"problem": problem}
        line = sealed({"caption": caption, **what}, salt=self.folder.name).encode()
        with writing(self.path), self._lock, self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # half a line, of a process that was killed
                line = b"\n" + line
            os.write(file.fileno(), line + b"\n")
        self._entries[caption] = graph, problem

    def _read(self) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            return
        try:
            for line in read_lines(self.path, LONGEST, LARGEST):
                self._take(line)
        except Unreadable as error:
            raise UserError(f"{error}; delete it: its captions are parsed anew") from error

    def _take(self, line: bytes) -> None:
        try:
            caption, entry = read_line(line, self.folder.name)
        except ValueError:
            self.damaged += 1
        else:
            self._entries[caption] = entry


def read_line(line: bytes, owner: str) -> tuple[str, Entry]:
    """A caption and what `owner`, the name of a parser's folder, made of it; raises `ValueError` for a line that isn't
    whole or that another parser has written."""
    content = unsealed(line.decode(), "a line", owner)
    caption = content.get("caption") if isinstance(content, dict) else None
    if not isinstance(caption, str):
        raise NotAGraph("no caption: a line of something else")
    if isinstance(problem := content.get("problem"), str):
        return caption, (None, problem)
    return caption, (from_json(content), "")
