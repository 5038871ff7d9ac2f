"""Optuna's journal with a digest in each of its lines: one that the disk changed is noticed when it is read."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from menagerie.envs.core.reading import Unreadable, parse_json
from menagerie.envs.core.records import KEY, MARK, changed, text_digest
from menagerie.studies.trials.leases import JournalLock


class Journal(BaseJournalBackend):
    """A file of JSON lines, as Optuna's own. Lines without a digest, as optuna-dashboard adds them, are read.

    Blank lines, which editors and `cat` leave, are passed over; `line` is the number of the one that was read last.
    """

    def __init__(self, path: Path, lock: JournalLock) -> None:
        self.path, self.lock, self.line = path, lock, 0
        self.places = {0: (0, 0)}  # of a log, by its number: the byte at which it may begin, and the lines before that
        path.touch()

    def __str__(self) -> str:
        return f"{self.path} line {self.line}"

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add lines, in one write."""
        lines = [json.dumps(log | {KEY: line_digest(log)}, separators=(",", ":")) + "\n" for log in logs]
        self.lock.acquire()
        try:
            with self.path.open("ab") as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        finally:
            self.lock.release()

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """What lines say, from a number on; raises `Unreadable` for one that isn't as it was written."""
        number = log_number_from if log_number_from in self.places else 0
        start, self.line = self.places[number]
        with self.path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):  # somebody is writing it, or died: then the next writer cuts it off
                    return
                start, self.line = start + len(line), self.line + 1
                if not line.strip():
                    continue
                number += 1
                self.places[number] = (start, self.line)
                if number > log_number_from:
                    yield self.said(line)

    def said(self, line: bytes) -> dict[str, Any]:
        """The log in a line, without its digest."""
        try:
            log = parse_json(line, self)
            if not isinstance(log, dict) or "op_code" not in log:
                raise Unreadable(f"{self} is no line of a journal")
            digest = log.pop(KEY, None)
            if (digest is None and is_spoilt(log)) or (digest is not None and digest != line_digest(log)):
                raise changed(self)
        except Unreadable as error:
            raise Unreadable(f"{error}; {self.way_out()}") from error
        return log

    def way_out(self) -> str:
        """What to do about the line that was read last.

        What follows it can't be kept: trials are numbered by the lines that make them.
        """
        kept = self.line - 1
        return f"to go on, keep only the {kept} lines before it (head -n {kept}): trials that ended later are run again"


def line_digest(log: dict[str, Any]) -> str:
    """The digest of what a line says."""
    return text_digest(json.dumps(log, separators=(",", ":")))


def is_spoilt(log: dict[str, Any]) -> bool:
    """Whether a line has a digest under another key than its own."""
    return any(isinstance(value, str) and value.startswith(MARK) for value in log.values())
