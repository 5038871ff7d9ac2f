"""Keeps answers on disk, by the image's pixels, the question, and everything that decides the model's answers."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.reading import Unreadable, shaped
from menagerie.envs.core.sealed_lines import SealedLines
from menagerie.models.judges.questions import VERSION, Answer, Question

NAME = 60  # characters of a model's name in its folder's


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of an `Answer` that a line of the file may have."""

    text: str = ""
    first: list[tuple[str, float]] | None = None
    likelihood: float | None = None
    refused: str = ""
    cut: bool = False
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


class Line(msgspec.Struct):
    """A line of the file."""

    key: str
    answer: Kept


class AnswerStore:
    """The answers of one model: a folder below `root` with `model.json`, its identity, and `answers.jsonl`.

    Other models, and other settings of a model, have folders of their own. Refusals are kept; questions without an
    answer aren't.
    """

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        """Read the answers kept so far; raises `UserError` if the folder can't be written, or its file can't be
        read."""
        safe = re.sub(r"[^\w.-]+", "-", name).strip("-.")[-NAME:]
        self.folder = root / f"{safe}-{digest(identity)}"
        self._lines = SealedLines(self.path, self.folder.name)
        self._known: dict[str, Answer] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / "model.json").exists():
                write_text(self.folder / "model.json", json.dumps(dict(identity), indent=1))
            self._lines.read(self._take)
        except Unreadable as error:
            raise UserError(f"{error}; delete it: its questions are asked anew") from error
        except OSError as error:
            reason = f"{self.folder} can't be written ({error.strerror})"
            raise UserError(f"{reason}; choose another --judge.answers") from error

    @property
    def path(self) -> Path:
        return self.folder / "answers.jsonl"

    def get(self, key: str) -> Answer | None:
        """Return the answer under this key; None if there is none."""
        return self._known.get(key)

    def add(self, key: str, answer: Answer) -> None:
        """Keep an answer; one with `unanswered` only in memory."""
        if not answer.unanswered:
            fields = {name: value for name, value in answer._asdict().items() if value != Answer._field_defaults[name]}
            self._lines.add({"key": key, "answer": fields})
        self._known[key] = answer

    def _take(self, content: Any) -> None:
        line = shaped(content, Line, self.path)
        first = line["answer"].pop("first", None)
        self._known[line["key"]] = Answer(first=first and tuple(map(tuple, first)), **line["answer"])


def pixels_key(picture: UInt8[np.ndarray, "h w 3"] | None) -> str:
    """Hash of an image's pixels, not of a file, whose compression differs between machines; empty for no image."""
    if picture is None:
        return ""
    return hashlib.sha256(repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes()).hexdigest()


def question_key(question: Question, pixels: str) -> str:
    """Hash of a question about an image with these pixels."""
    every = [VERSION, pixels, question.text, question.words, question.reply]
    return hashlib.sha256(json.dumps(every).encode()).hexdigest()
