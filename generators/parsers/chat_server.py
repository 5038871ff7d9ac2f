"""Requests to a server of the OpenAI chat-completions protocol, repeated if it is busy, slow or can't be reached.

One limit of time holds for all of a request: the look-up of the server's name, the connection, every part of the
answer.
"""

import contextlib
import http.client
import json
import math
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import parse_json

LARGEST = 4 << 20  # bytes of an answer
LARGEST_ERROR = 500  # bytes that are read of what comes with an error
# HTTP statuses after which the same request may succeed, and statuses after which no request will.
BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
HOPELESS = {401: "it refuses the key", 403: "it forbids this", 404: "it has no such model or path"}
LONGEST_WAIT = 120  # seconds that a server may ask for (Retry-After); if it asks for more, the request fails
FIRST_WAIT = 0.5  # seconds before the first repetition; each wait is twice the one before


class NoAnswer(Exception):
    """Raised if a request got no answer in all its attempts. The text is "KIND: DETAIL"."""


class Rejected(NoAnswer):
    """Raised if a server rejects a request, which then isn't repeated."""


Read = TypeVar("Read")  # what is read of an answer: it has the numbers of tokens, as `Reply`


class _Busy(Exception):
    """Raised for an answer after which the same request may succeed."""


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Takes an answer of any status as it is. Redirections aren't followed, as that would send the key elsewhere."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


@dataclass
class ChatServer:
    """A server behind `url`, which ends in "/v1". Threads may share it."""

    url: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    """Seconds for one request, until its answer is complete."""
    attempts: int = 5
    """Number of times a request is sent before it fails."""
    per_minute: float = 0.0
    """Most requests that all threads together send in a minute; 0 sets no limit."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise UserError(f"{self.url!r} is no address of a server; write http://HOST:PORT/v1")
        if "@" in self.url or "?" in self.url:  # the address is written to results, so it must hold no password or key
            raise UserError(
                "the address of a server has a name, a password or a query; put its key into the environment (key=NAME)"
            )
        self.counts: Counter[str] = Counter()
        """Numbers of requests, of repeated ones, and of tokens in and out."""
        self._opener = urllib.request.build_opener(_AnyStatus)  # by the proxies of the environment as it is now
        self._lock = threading.Lock()
        self._not_before = 0.0  # no thread sends before this time
        self._gap = 60 / self.per_minute if self.per_minute else 0.0

    def chat(
        self, settings: Mapping[str, Any], stopped: threading.Event, read: Callable[[Mapping[str, Any]], Read]
    ) -> Read:
        """Send `settings` as JSON and return what `read` makes of the answer's JSON. Sends nothing more once `stopped`
        is set.

        Raises `NoAnswer` if all attempts fail, `stopped` is set or the server asks for too long a wait, `Rejected` if
        it rejects this request, and `UserError` if it would reject every request."""
        body, problem, wait = json.dumps(settings).encode(), "not requested: the server had stopped answering", 0.0
        for attempt in range(self.attempts):
            if not self._waited(wait, stopped):
                break
            self._count(requests=1, repeated=int(attempt > 0))
            wait = FIRST_WAIT * 2**attempt * random.uniform(0.75, 1.25)  # threads shouldn't repeat at once
            try:
                reply = protocol(self._send(body), read)
            except _Busy as error:
                problem = str(error)
            except (OSError, http.client.HTTPException, ValueError) as error:  # gone, too slow, cut off, no JSON
                problem = f"{failure_kind(error)}: {error}"
            else:
                self._count(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
                return reply
        raise NoAnswer(problem)

    def _waited(self, seconds: float, stopped: threading.Event) -> bool:
        """Wait this many seconds, then as long as the server asked all requests to wait, then for a turn
        (`per_minute`). Return False if `stopped` was set meanwhile."""
        while not stopped.wait(seconds):
            with self._lock:
                now = time.monotonic()
                seconds = self._not_before - now
                if seconds <= 0:
                    self._not_before = now + self._gap
                    return True
        return False

    def _send(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(f"{self.url.rstrip('/')}/chat/completions", body, headers)
        response, content = self._exchange(request)
        if response.status >= 300:
            self._refuse(response, content)
        return content

    def _exchange(self, request: urllib.request.Request) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request; returns the answer, read and closed, and its content. Raises `TimeoutError` after `timeout`
        seconds, also if the server sends a little now and then, and `OSError`, `HTTPException` or `ValueError` for an
        answer that is cut off, none of HTTP or too large.

        A thread of its own waits for the server, because neither a look-up of a name nor the parts that `http.client`
        reads line by line can be given a limit.
        """
        found: Future[tuple[http.client.HTTPResponse, bytes]] = Future()

        def work() -> None:
            try:
                with self._opener.open(request, timeout=self.timeout) as response:
                    found.set_result((response, read_content(response)))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=work, daemon=True).start()  # a daemon doesn't delay Ctrl-C
        try:
            return found.result(self.timeout)
        except TimeoutError as error:
            raise TimeoutError(f"no whole answer within {self.timeout:g} s") from error

    def _refuse(self, error: http.client.HTTPResponse, content: bytes) -> None:
        """Raise for an HTTP error: `_Busy` if the request should be repeated."""
        said = " ".join(content.decode(errors="replace").split()) or "it says no more"
        wait = retry_after(error.headers.get("Retry-After"))
        if error.status in HOPELESS or error.status < 400:
            why = HOPELESS.get(error.status, "it leads elsewhere")
            raise UserError(f"the server {self.url} answers {error.status}, {why}; correct url, model or key ({said})")
        if error.status not in BUSY:
            raise Rejected(f"HTTP {error.status}: {said}")
        if wait and wait > LONGEST_WAIT:
            raise NoAnswer(f"HTTP {error.status}: it requests to wait {wait:.0f} s")
        if wait:
            with self._lock:
                self._not_before = max(self._not_before, time.monotonic() + wait)
        raise _Busy(f"HTTP {error.status}: {said}")

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)


def read_content(response: http.client.HTTPResponse) -> bytes:
    """The whole content of an answer, or the beginning of an error's, if it comes."""
    fine = response.status < 300
    try:
        content = response.read(LARGEST + 1 if fine else LARGEST_ERROR)
    except (OSError, http.client.HTTPException):
        if fine:
            raise
        content = b""
    if fine and len(content) > LARGEST:
        raise ValueError(f"an answer of more than {LARGEST >> 20} MB")
    if fine and response.length:  # `read` doesn't check the length
        raise http.client.IncompleteRead(content, response.length)
    return content


def protocol(body: bytes, read: Callable[[Mapping[str, Any]], Read]) -> Read:
    """Return what `read` makes of the server's JSON. Raises `ValueError` if the JSON doesn't follow the protocol."""
    try:
        return read(parse_json(body, "it"))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"an answer that isn't of the protocol ({type(error).__name__}: {error})") from error


def key_in(variable: str) -> str:
    """Return the server's key from an environment variable, or "" if `variable` is empty. Raises if the variable holds
    no key."""
    key = os.environ.get(variable, "").strip()
    if variable and not (key and key.isascii() and key.isprintable()):  # else the error about the header would show it
        raise UserError(f"the environment has no {variable} that is a key, of plain letters in one line; set it")
    return key


def failure_kind(error: Exception) -> str:
    """The kind of a failed request: "timeout", "connection" or "no protocol"."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "timeout"
    return "no protocol" if isinstance(reason, ValueError) else "connection"


def retry_after(text: str | None) -> float | None:
    """The seconds in a Retry-After header; None if there are none, as in the header's other form, a date."""
    with contextlib.suppress(ValueError, TypeError):
        return seconds if 0 <= (seconds := float(text)) < math.inf else None
