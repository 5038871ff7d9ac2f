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
        """Call `ask` for each thing, in threads, and yield each result as soon as it is there. Raises what `ask`
        raises."""
        source, lock = iter(things), threading.Lock()
        done: queue.SimpleQueue[tuple[Outcome | None, Exception | None]] = queue.SimpleQueue()

        def work() -> None:
            while True:
                with lock:
                    thing = next(source, None)
                if thing is None:
                    return
                try:
                    done.put((ask(thing), None))
                except Exception as error:
                    done.put((None, error))
                    return

        for _ in range(min(self.at_once, len(things))):
            threading.Thread(target=work, daemon=True).start()  # daemons don't delay Ctrl-C
        try:
            for _ in things:
                outcome, error = done.get()
                if error is not None:
                    raise error
                yield outcome
        finally:
            self.stopped.set()
