"""Requests to a server of the OpenAI chat-completions protocol, repeated if it is busy, slow or can't be reached."""

import http.client
import json
import os
import random
import threading
import time
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
STRANGE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)  # of other JSON
FIRST_WAIT = 0.5  # seconds before the first repetition; each wait is twice the one before


class NoAnswer(Exception):
    """Raised if a request got no answer in all its attempts. The text is "KIND: DETAIL"."""


class Rejected(NoAnswer):
    """Raised if a server rejects a request, which then isn't repeated."""


Read = TypeVar("Read")  # what is read of an answer: it has the numbers of tokens, as `Reply`


class _Busy(Exception):
    """Raised for an answer after which the same request may succeed."""


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Gives answers of any status; a redirection isn't followed, because it would send the key elsewhere."""

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
            if not self._wait(wait, stopped):
                break
            self._count(requests=1, repeated=int(attempt > 0))
            wait = FIRST_WAIT * 2**attempt * random.uniform(0.75, 1.25)  # threads shouldn't repeat at once
            try:
                reply = read(parse_json(self._send(body), "it"))
            except _Busy as error:
                problem = str(error)
            except (OSError, http.client.HTTPException) as error:
                slow = isinstance(getattr(error, "reason", error), TimeoutError)
                problem = f"{'timeout' if slow else 'connection'}: {error}"
            except STRANGE as error:
                problem = f"no protocol: it answers otherwise ({type(error).__name__}: {error})"
            else:
                self._count(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
                return reply
        raise NoAnswer(problem)

    def _wait(self, seconds: float, stopped: threading.Event) -> bool:
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
        answer: Future[bytes] = Future()

        def exchange() -> None:
            try:
                with self._opener.open(request, timeout=self.timeout) as response:
                    if response.status >= 300:
                        raise self._refusal(response)
                    answer.set_result(response.read(LARGEST + 1))
            except Exception as error:
                answer.set_exception(error)

        # In a thread, because a server may send a little of any part now and then, for ever.
        threading.Thread(target=exchange, daemon=True).start()
        try:
            content = answer.result(self.timeout)
        except TimeoutError as error:
            raise TimeoutError(f"no whole answer within {self.timeout:g} s") from error
        if len(content) > LARGEST:
            raise ValueError(f"an answer of more than {LARGEST >> 20} MB")
        return content

    def _refusal(self, response: http.client.HTTPResponse) -> Exception:
        """What an answer with an error is to raise: `_Busy` if the request should be repeated."""
        code, body = response.status, response.read(LARGEST_ERROR).decode(errors="replace")
        said = " ".join(body.split()) or "it says no more"
        if code in HOPELESS or code < 400:
            why = HOPELESS.get(code, "it leads elsewhere")
            return UserError(f"the server {self.url} answers {code}, {why}; correct url, model or key ({said})")
        if code not in BUSY:
            return Rejected(f"HTTP {code}: {said}")
        asked = response.headers.get("Retry-After", "")
        wait = int(asked) if asked.isdecimal() else 0  # its other form, a date, is passed over
        if wait > LONGEST_WAIT:
            return NoAnswer(f"HTTP {code}: it requests to wait {wait} s")
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + wait)
        return _Busy(f"HTTP {code}: {said}")

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)


def key_in(variable: str) -> str:
    """The server's key from an environment variable; "" if `variable` is empty. Raises if the variable holds no key."""
    key = os.environ.get(variable, "").strip()
    if variable and not (key and key.isascii() and key.isprintable()):  # else the error about the header would show it
        raise UserError(f"the environment has no {variable} that is a key, of plain letters in one line; set it")
    return key
