"""Reads a damaged file in a process of its own, with limits on time and memory, and judges what comes of it."""

import faulthandler
import gc
import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError

SECONDS = 20.0  # in which a small file must be read or refused
MEMORY = 4 << 30  # bytes that reading may take
LONGEST = 2500  # characters of a message, which may quote the file
ANEW = "anew"  # what reading returns if the project makes the file again
ERROR, RIGHT, TRACEBACK, HANG, WRONG = "clear error", "right", "traceback", "hang", "silently wrong"
BAD = (TRACEBACK, HANG, WRONG)


class Verdict(NamedTuple):
    """One of the words above, with the message or the traceback."""

    kind: str
    detail: str


def as_json(value: Any) -> Any:
    """Return a value as JSON, with digests of arrays and tensors, so that different values differ."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return [str(value.shape), str(value.dtype), sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


def outcome(read: Callable[[Path], Any], path: Path) -> tuple[str, Any]:
    """Read a file in a fork; returns ("value", what was read), or "error", "traceback" or "hang" with a text."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        answer_and_exit(read, path, into)
    os.close(into)
    try:
        return received(out, child)
    finally:
        os.close(out)
        os.waitpid(child, 0)


def answer_and_exit(read: Callable[[Path], Any], path: Path, into: int) -> None:
    """In the fork: read the file, send the outcome, and end without anything that a test does at its end."""
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        faulthandler.disable()
        gc.freeze()  # a collection would touch, and so copy, all that the tests hold
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            answer = ["value", as_json(read(path))]
        except UserError as error:
            answer = ["error", str(error)]
        except BaseException:
            answer = ["traceback", traceback.format_exc()[-3000:]]
        with os.fdopen(into, "w") as pipe:
            json.dump(answer, pipe)
    finally:
        os._exit(0)


def received(out: int, child: int) -> tuple[str, Any]:
    """Receive what a fork sends; one that takes too long is killed."""
    parts, end = [], time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([out], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            return "hang", f"no answer in {SECONDS:g} seconds"
        part = os.read(out, 1 << 20)
        if not part:
            break
        parts.append(part)
    if not parts:
        return "traceback", "the process crashed"
    return tuple(json.loads(b"".join(parts)))


def judged(found: tuple[str, Any], intact: Any, same: Callable[[Any, Any], bool], path: Path, free: bool) -> Verdict:
    """The verdict on an outcome. Of `free` files, which have no digest, any value is right."""
    what, value = found
    if what == "error":
        problem = unclear(value, path)
        return Verdict(TRACEBACK if problem else ERROR, problem + value)
    if what != "value":
        return Verdict(HANG if what == "hang" else TRACEBACK, value)
    return Verdict(RIGHT if free or value == ANEW or same(value, intact) else WRONG, json.dumps(value)[:500])


def unclear(message: str, path: Path) -> str:
    """Why a message isn't clear; empty if it is one short line that names the file or its folder."""
    if len(message.splitlines()) > 1 or len(message) > LONGEST:
        return "not one line: "
    return "" if path.name in message or path.stem in message or str(path.parent) in message else "names no file: "
