"""Parses captions with a language model behind any server of the OpenAI protocol (OC-CLIP, A.3 and A.6)."""

import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import COUNT
from menagerie.generators.parsers.chat_server import ChatServer, NoAnswer
from menagerie.generators.parsers.graph_json import NotAGraph
from menagerie.generators.parsers.llm_prompt import correction, prompt, question, read_answer
from menagerie.generators.parsers.parser import Parsed
from menagerie.generators.parsers.registry import ParserSpec

VERSION = 1  # of how answers are read


@dataclass(frozen=True)
class LLMOptions:
    """Of a language model."""

    model: str = ""
    """Its name at the server; required."""
    url: str = "http://localhost:8000/v1"
    """Address of the server."""
    key: str = ""
    """Name of the environment variable that has the server's key, such as OPENAI_API_KEY."""
    concurrency: Annotated[int, COUNT] = 16
    """Requests at a time."""
    timeout: Annotated[float, COUNT] = 60.0
    """Seconds for one request."""
    attempts: Annotated[int, COUNT] = 5
    """Times that a request is sent before it is given up."""
    answers: Annotated[int, COUNT] = 3
    """Answers that the model may give to a caption until one can be used."""
    tokens: Annotated[int, COUNT] = 1024
    """Longest answer, in tokens."""


class LanguageModel:
    """Requests a graph of each caption, several at a time, at temperature 0.

    An answer that can't be used is sent back with what is wrong with it. After as many captions without any answer as
    there are requests at a time, nothing more is requested: the server is gone.
    """

    def __init__(self, options: LLMOptions, server: ChatServer) -> None:
        self.options, self.server = options, server
        self._silent = 0  # captions without an answer since the last that had one

    def identity(self) -> Mapping[str, Any]:
        """The model, the messages before the caption, and how its answers are read; not which server it is."""
        own = {"model": self.options.model, "answers": self.options.answers, "tokens": self.options.tokens}
        return {"parser": "llm", "version": VERSION, **own, "prompt": prompt()}

    def spent(self) -> Mapping[str, int]:
        """Requests, repeated ones, and tokens, as the server counts them."""
        return dict(self.server.counts)

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """Each caption as it is answered, or given up."""
        source, lock, stopped = iter(captions), threading.Lock(), threading.Event()
        done: queue.SimpleQueue[Parsed | Exception] = queue.SimpleQueue()
        self._silent = 0

        def work() -> None:
            while True:
                with lock:
                    caption = next(source, None)
                if caption is None:
                    return
                try:
                    done.put(self._parsed(caption, stopped))
                except Exception as error:
                    done.put(error)
                    return

        for _ in range(min(self.options.concurrency, len(captions))):
            threading.Thread(target=work, daemon=True).start()  # which an interrupt doesn't wait for
        try:
            for _ in captions:
                outcome = done.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome
        finally:
            stopped.set()

    def _parsed(self, caption: str, stopped: threading.Event) -> Parsed:
        messages, problem = [*prompt(), question(caption)], ""
        settings = {"model": self.options.model, "temperature": 0, "max_tokens": self.options.tokens}
        for _ in range(self.options.answers):
            try:
                reply = self.server.chat({**settings, "messages": messages}, stopped)
            except NoAnswer as error:
                self._silent += 1
                if self._silent >= self.options.concurrency:
                    stopped.set()
                return Parsed(caption, None, str(error), answered=False)
            self._silent = 0
            try:
                return Parsed(caption, read_answer(reply.text))
            except NotAGraph as error:
                problem = str(error)
                messages = [*messages, *correction(reply.text, problem)]
        return Parsed(caption, None, problem)


def build(options: LLMOptions) -> LanguageModel:
    """Check the options; sends nothing."""
    if not options.model:
        raise UserError("the parser llm needs the name of a model: llm:model=NAME,url=http://HOST:PORT/v1")
    if not options.timeout or not all((options.concurrency, options.attempts, options.answers, options.tokens)):
        raise UserError("concurrency, timeout, attempts, answers and tokens of the parser llm must be above 0")
    if options.key and not os.environ.get(options.key):
        raise UserError(f"the environment has no {options.key}, which is to have the server's key; set it")
    key = os.environ[options.key].strip() if options.key else ""
    if not key.isascii() or not key.isprintable():  # the header would be refused with the key in the message
        raise UserError(f"what the environment has as {options.key} is no key: it has line breaks or foreign letters")
    server = ChatServer(options.url, key, options.timeout, options.attempts)
    return LanguageModel(options, server)


PARSER = ParserSpec("llm", "a language model behind a server of the OpenAI protocol, such as vLLM", build, LLMOptions)
