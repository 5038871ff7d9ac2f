"""What stands in an answer of the chat-completions protocol: the model's text without its thoughts, and numbers.

All raise `ValueError`, or what a wrong type or a missing key raises, for what they don't understand.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

BEGIN, END = "<think>", "</think>"  # of a model's thoughts
APART = ("reasoning", "reasoning_content")  # fields of a message that has them apart
TEXTS, THOUGHTS = ("text", "output_text"), ("thinking", "reasoning")  # kinds of a content's parts
ROUNDING = 1e-4  # by which a log-probability may be above 0


class Reply(NamedTuple):
    """A model's reply, with the numbers of tokens."""

    text: str
    """Without thoughts; empty if the model wrote none."""
    reasons: bool
    """Whether it has thoughts."""
    cut: bool
    """Whether it was cut off at the largest length, or ends in the middle of a thought."""
    refused: str
    """Why the model or a filter refuses."""
    tokens_in: int
    tokens_out: int


def read_reply(content: Mapping[str, Any]) -> Reply:
    """Read an answer's JSON. Thoughts stand in a field or a part of their own, or in the text before `END`. Some models
    begin with them without `BEGIN`."""
    choice = content["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    refused = str(message.get("refusal") or "content filter" * (finish == "content_filter"))
    apart = any(str(message.get(name) or "").strip() for name in APART)
    written = message.get("content") if refused or apart else message["content"]
    parts = written if isinstance(written, list) else [{"type": "text", "text": "" if written is None else written}]
    apart = apart or any(part["type"] in THOUGHTS for part in parts)
    spoken = [part for part in parts if part["type"] not in THOUGHTS]
    if strange := next((part for part in spoken if part["type"] not in TEXTS), None):
        raise ValueError(f"a content that is no text: {strange!s:.60}")
    text = "".join(part["text"] for part in spoken)
    _, end, rest = text.rpartition(END)
    endless = text.lstrip().startswith(BEGIN) and not end
    usage = content.get("usage") or {}
    return Reply(
        "" if endless else rest,
        bool(end) or endless or apart,
        endless or finish == "length",
        refused,
        *(int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")),
    )


def log_probability(value: Any) -> float | None:
    """A log-probability; None if there is no probability at all: servers write -9999 or the least float for that."""
    if type(value) not in (int, float) or not value <= ROUNDING:
        raise ValueError(f"{value!s:.40} is no log-probability")
    return min(0.0, float(value)) if math.exp(value) > 0 else None
