"""Sends many questions to a server, several at once, until it stops answering."""

import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.pool import ThreadPool
from typing import TypeVar

Question = TypeVar("Question")
Outcome = TypeVar("Outcome")


class ParallelRequests:
    """Sends at most `at_once` questions at the same time.

    A server that leaves that many in a row without an answer counts as gone: `stopped` is set, and nothing more should
    be sent."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.stopped = at_once, threading.Event()
        self._silent = 0  # questions without an answer since the last answer

    def note(self, answered: bool) -> None:
        """Note whether the server answered about a question."""
        self._silent = 0 if answered else self._silent + 1
        if self._silent >= self.at_once:
            self.stopped.set()

    def each(self, ask: Callable[[Question], Outcome], questions: Sequence[Question]) -> Iterator[Outcome]:
        """Call `ask` for each question, in threads, and yield each result as soon as it is there. If `ask` raises,
        nothing more is begun; results of what was begun are yielded before that error is raised."""
        errors: list[Exception] = []
        ended, room = threading.Event(), threading.Semaphore(2 * self.at_once)

        def begun() -> Iterator[Question]:
            for question in questions:  # maybe millions, of which the pool would queue all at once
                room.acquire()
                if ended.is_set():
                    return
                yield question

        def attempt(question: Question) -> list[Outcome]:
            try:
                return [] if ended.is_set() else [ask(question)]
            except Exception as error:
                errors.append(error)
                ended.set()
                return []

        threads = ThreadPool(min(self.at_once, len(questions)) or 1)  # daemons, which don't delay Ctrl-C
        try:
            for outcomes in threads.imap_unordered(attempt, begun()):
                room.release()
                yield from outcomes
            if errors:
                raise errors[0]
        finally:
            ended.set()
            room.release()
            threads.terminate()
            self.stopped.set()
