"""Optuna's journal with a digest in each of its lines: one that the disk changed is noticed when it is read."""

import json
from collections.abc import Generator
from typing import Any

from optuna.storages.journal import JournalFileBackend

from envs.common.records import KEY, MARK, changed, text_digest


class Journal(JournalFileBackend):
    """A file of JSON lines. Lines of before there were digests are read as they are; Optuna passes over the key."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add lines, in one write."""
        super().append_logs([log | {KEY: line_digest(log)} for log in logs])

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """The lines from a number on; raises `Unreadable` for one that was changed."""
        for log in super().read_logs(log_number_from):
            digest = log.pop(KEY, None)
            if (digest is None and is_spoilt(log)) or (digest is not None and digest != line_digest(log)):
                raise changed(f"a line of {self._file_path}")
            yield log


def line_digest(log: dict[str, Any]) -> str:
    """The digest of what a line says."""
    return text_digest(json.dumps(log, separators=(",", ":")))


def is_spoilt(log: dict[str, Any]) -> bool:
    """Whether a line has a digest under another key than its own."""
    return any(isinstance(value, str) and value.startswith(MARK) for value in log.values())
