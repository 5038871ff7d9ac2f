"""One request over HTTP, with one limit of time on all of it: the look-up of the server's name, the connection, and
every part of the answer."""

import http.client
import threading
import urllib.request
from concurrent.futures import Future
from email.message import Message
from typing import Any, NamedTuple

LARGEST = 4 << 20  # bytes of an answer
LARGEST_ERROR = 500  # bytes that are read of what comes with an error


class Answered(NamedTuple):
    """A server's answer."""

    status: int
    headers: Message
    body: bytes
    """Of an error, 300 and above, only the beginning."""


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Takes an answer of any status as it is. Redirections aren't followed, as that would send the key elsewhere."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


def opener() -> urllib.request.OpenerDirector:
    """What sends requests, by the proxies of the environment as it is now."""
    return urllib.request.build_opener(_AnyStatus)


def exchange(by: urllib.request.OpenerDirector, request: urllib.request.Request, seconds: float) -> Answered:
    """Send a request and return the whole answer. Raises `TimeoutError` after `seconds`, also if the server sends a
    little now and then, and `OSError`, `HTTPException` or `ValueError` for an answer that is cut off, none of HTTP or
    too large.

    A thread of its own waits for the server, because neither a look-up of a name nor the parts that `http.client` reads
    line by line can be given a limit.
    """
    found: Future[Answered] = Future()

    def work() -> None:
        try:
            with by.open(request, timeout=seconds) as response:
                found.set_result(read(response))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=work, daemon=True).start()  # a daemon doesn't delay Ctrl-C
    try:
        return found.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(f"no whole answer within {seconds:g} s") from error


def read(response: http.client.HTTPResponse) -> Answered:
    """Read an answer to its end, or the beginning of an error's, if it comes."""
    fine = response.status < 300
    try:
        body = response.read(LARGEST + 1 if fine else LARGEST_ERROR)
    except (OSError, http.client.HTTPException):
        if fine:
            raise
        body = b""
    if fine and len(body) > LARGEST:
        raise ValueError(f"an answer of more than {LARGEST >> 20} MB")
    if fine and response.length:  # `read` doesn't check the length
        raise http.client.IncompleteRead(body, response.length)
    return Answered(response.status, response.headers, body)
