"""Asks a server about many things, several at once, until it stops answering."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")
Outcome = TypeVar("Outcome")


class Asking:
    """Asks a server about at most `at_once` things at the same time.

    A server that leaves that many in a row without an answer counts as gone: `stopped` is set, and nothing more should
    be sent."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.stopped = at_once, threading.Event()
        self._silent = 0  # things without an answer since the last answer

    def note(self, answered: bool) -> None:
        """Note whether the server answered about a thing."""
        self._silent = 0 if answered else self._silent + 1
        if self._silent >= self.at_once:
            self.stopped.set()

    def each(self, ask: Callable[[Thing], Outcome], things: Sequence[Thing]) -> Iterator[Outcome]:
        """Call `ask` for each thing, in threads, and yield each result as soon as it is there. If `ask` raises, nothing
        more is begun; results of what was begun are yielded before that error is raised."""
        source, lock = iter(things), threading.Lock()
        done: queue.SimpleQueue[tuple[Outcome] | Exception | None] = queue.SimpleQueue()
        ended = threading.Event()

        def work() -> None:
            try:
                while not ended.is_set():
                    with lock:
                        thing = next(source, None)
                    if thing is None:
                        break
                    done.put((ask(thing),))
            except Exception as error:
                ended.set()
                done.put(error)
            finally:
                done.put(None)

        threads = min(self.at_once, len(things))
        for _ in range(threads):
            threading.Thread(target=work, daemon=True).start()  # daemons don't delay Ctrl-C
        failure = None
        try:
            while threads:
                found = done.get()
                if found is None:
                    threads -= 1
                elif isinstance(found, Exception):
                    failure = failure or found
                else:
                    yield found[0]
            if failure:
                raise failure
        finally:
            ended.set()
            self.stopped.set()
