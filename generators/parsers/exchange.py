"""One request over HTTP, with one limit of time on all of it: the look-up of the server's name, the connection, and
every part of the answer."""

import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Mapping
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


class Request(urllib.request.Request):
    """A request whose connections can be ended from another thread."""

    def __init__(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(url, body, dict(headers))
        self._ended = False
        self._sockets: list[socket.socket] = []

    def connect(self, *args: Any) -> socket.socket:
        """`socket.create_connection`, of which a second handle is kept: TLS replaces the first."""
        made = socket.create_connection(*args)
        self._sockets.append(made.dup())
        if self._ended:
            self.end()
        return made

    def end(self) -> None:
        """Shut down all connections, whatever is read from or written to them at the moment."""
        self._ended = True
        for handle in self._sockets:
            with contextlib.suppress(OSError):  # the server has closed it
                handle.shutdown(socket.SHUT_RDWR)
            handle.close()


class _Connecting(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Makes connections by `Request.connect`."""

    def do_open(self, http_class: Any, request: Any, **options: Any) -> Any:
        def made(*args: Any, **more: Any) -> http.client.HTTPConnection:
            connection = http_class(*args, **more)
            connection._create_connection = request.connect  # the only way that covers a proxy's answer and TLS
            return connection

        return super().do_open(made, request, **options)


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Takes an answer of any status as it is. Redirections aren't followed, as that would send the key elsewhere."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


def opener() -> urllib.request.OpenerDirector:
    """What sends requests, by the proxies of the environment as it is now."""
    return urllib.request.build_opener(_Connecting, _AnyStatus)


def exchange(by: urllib.request.OpenerDirector, request: Request, seconds: float) -> Answered:
    """Send a request and return the whole answer. Raises `TimeoutError` after `seconds`, also if the server sends a
    little now and then, and `OSError`, `HTTPException` or `ValueError` for an answer that is cut off, none of HTTP or
    too large.

    A thread of its own waits for the server, because neither a look-up of a name nor the parts that `http.client` reads
    line by line can be given a limit. Afterwards its connections are shut down, so that it ends too.
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
    finally:
        request.end()


def read(response: http.client.HTTPResponse) -> Answered:
    """Read an answer to its end, or the beginning of an error's, as much of it as comes."""
    fine = response.status < 300
    parts, size, most = [], 0, LARGEST if fine else LARGEST_ERROR
    try:
        while size <= most and (part := response.read1(min(1 << 16, most + 1 - size))):
            parts.append(part)
            size += len(part)
        if size <= most and response.length:  # read1 doesn't check the length
            raise http.client.IncompleteRead(b"", response.length)
    except (OSError, http.client.HTTPException):
        if fine:
            raise
    if fine and size > most:
        raise ValueError(f"an answer of more than {most >> 20} MB")
    return Answered(response.status, response.headers, b"".join(parts))
