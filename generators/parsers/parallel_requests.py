"""Sends many questions to a server, several at once, until it stops answering."""

import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.pool import ThreadPool
from typing import TypeVar

Question = TypeVar("Question")
Outcome = TypeVar("Outcome")


class ParallelRequests:
    """Sends at most `at_once` questions at the same time. A server that leaves that many in a row without an answer
    counts as gone: `stopped` is set, and nothing more should be sent."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.stopped = at_once, threading.Event()
        self._silent = 0  # questions without an answer since the last answer

    def note(self, answered: bool) -> None:
        """Note whether the server answered about a question."""
        self._silent = 0 if answered else self._silent + 1
        if self._silent >= self.at_once:
            self.stopped.set()

    def each(self, ask: Callable[[Question], Outcome], questions: Sequence[Question]) -> Iterator[Outcome]:
        """Call `ask` for each question, in threads; yield results as they come. If it raises, nothing more is sent."""

        def attempt(question: Question) -> Outcome:
            try:
                return ask(question)
            except Exception:
                self.stopped.set()
                raise

        with ThreadPool(min(self.at_once, len(questions)) or 1) as threads:  # daemons, which don't delay Ctrl-C
            try:
                yield from threads.imap_unordered(attempt, questions)
            finally:
                self.stopped.set()
