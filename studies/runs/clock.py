"""What a training step costs the processor, whatever else the machine does."""

import statistics
import time


class StepClock:
    """Processor time (s) of steps, all threads of this process counted, processes that prepare batches not.

    Stopped after each step and started again when what follows it (looks, logs) is done. The first step after a pause,
    which loads and compiles, doesn't count; the median doesn't see the few steps before which a state was saved.
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.started: float | None = None

    def start(self) -> None:
        """A step begins."""
        self.started = time.process_time()

    def stop(self) -> None:
        """A step has ended."""
        if self.started is not None:
            self.steps.append(time.process_time() - self.started)

    def pause(self) -> None:
        """What comes next is no step."""
        self.started = None

    @property
    def median(self) -> float | None:
        """Seconds of a step; None if none was timed."""
        return statistics.median(self.steps) if self.steps else None
