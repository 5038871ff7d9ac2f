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

from menagerie.envs.core.kept_answers import KeptAnswers
from menagerie.envs.core.reading import check_shape
from menagerie.models.judges.questions import VERSION, Answer, Question

NAME = 60  # characters of a model's name in its folder's


class AnswerLine(msgspec.Struct):
    """A line of the file."""

    key: str
    answer: Answer


class AnswerStore(KeptAnswers[Answer]):
    """The answers of one model to questions. Refusals are kept; questions without an answer aren't."""

    about, file = "model.json", "answers.jsonl"

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        super().__init__(root, re.sub(r"[^\w.-]+", "-", name).strip("-.")[-NAME:], identity)

    def to_line(self, key: str, value: Answer) -> dict[str, Any]:
        return {"key": key, "answer": msgspec.to_builtins(value)}

    def from_line(self, content: Any) -> tuple[str, Answer]:
        line = msgspec.convert(check_shape(content, AnswerLine, self.path), AnswerLine)
        return line.key, line.answer


def pixels_key(picture: UInt8[np.ndarray, "h w 3"] | None) -> str:
    """Hash of an image's pixels, not of a file, whose compression differs between machines; empty for no image."""
    if picture is None:
        return ""
    return hashlib.sha256(repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes()).hexdigest()


def question_key(question: Question, pixels: str) -> str:
    """Hash of a question about an image with these pixels."""
    every = [VERSION, pixels, question.text, question.words, question.reply]
    return hashlib.sha256(json.dumps(every).encode()).hexdigest()
