"""A small server of the OpenAI chat-completions protocol, whose answers a test decides."""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from menagerie.generators.parsers.llm import CLOSE, OPEN


class Sent(NamedTuple):
    """What the server sends for one request."""

    text: str = ""
    """What the model has written."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """Sent instead of the protocol's JSON."""
    cut: bool = False
    """Whether the connection ends in the middle of the body."""


class Request(NamedTuple):
    """What the server received."""

    caption: str
    number: int
    """How many requests with this caption there were before."""
    content: dict[str, Any]
    headers: dict[str, str]


class ChatService:
    """`with ChatService(answer) as service: ...`; `answer` gives what is sent for a `Request`, or None to hang up."""

    def __init__(self, answer: Callable[[Request], Sent | None]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.most_at_once = 0
        self._at_once = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                service.serve(self)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "ChatService":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def captions(self) -> Counter[str]:
        """How often each caption was requested."""
        return Counter(request.caption for request in self.requests)

    def asked(self, content: dict[str, Any]) -> str:
        """The caption that a request asks about."""
        questions = [m["content"] for m in content["messages"] if m["content"].startswith("Caption: ")]
        return questions[-1].removeprefix("Caption: ")

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        content = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        assert handler.path == "/v1/chat/completions"
        caption = self.asked(content)
        with self._lock:
            request = Request(caption, self._seen[caption], content, dict(handler.headers))
            self._seen[caption] += 1
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            sent = self.answer(request)
        finally:
            with self._lock:  # before the client has its answer, and may send the next request
                self._at_once -= 1
        with contextlib.suppress(OSError):  # the client has gone
            self._send(handler, sent)

    def _send(self, handler: BaseHTTPRequestHandler, sent: Sent | None) -> None:
        if sent is None:
            handler.close_connection = True
            return
        message = {"choices": [{"message": {"role": "assistant", "content": sent.text}}]}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = json.dumps({**message, "usage": usage}).encode() if sent.body is None else sent.body
        handler.send_response(sent.status)
        for header in sent.headers:
            handler.send_header(*header)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2] if sent.cut else body)


def written(nodes: list, edges: list) -> str:
    """An answer of the form that the prompt asks for."""
    relationships = [dict(zip(("relationship", "subject", "object"), edge, strict=True)) for edge in edges]
    return f"Here it is.\n{OPEN}{json.dumps({'entities': nodes, 'relationships': relationships})}{CLOSE}"
