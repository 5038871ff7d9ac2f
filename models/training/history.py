"""What a training run was like, step by step.

A loss stays on its device until `read`, which waits for every step so far: images per second are counted from one
read to the next, so that they are those of steps that are done, whatever was still queued on a GPU.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Row(NamedTuple):
    """One step."""

    step: int
    loss: float
    learning_rate: float
    """The highest of all parts of the scorer."""
    validation: float
    """Accuracy after the step, 0 to 1; nan where nobody looked."""
    images_per_second: float
    """Mean since the read before."""


class History:
    """The rows of all steps that were read; part of the run's state, so that a resumed run has each step once."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.rows: list[Row] = []
        self._unread: list[tuple[int, Float[Tensor, ""], float]] = []
        self.restart()

    def restart(self) -> None:
        """Count time from now on: what was done since the last read is no training."""
        self._since = time.perf_counter()

    def add(self, step: int, loss: Float[Tensor, ""], learning_rate: float) -> None:
        """Note a step, without waiting for its loss."""
        self._unread.append((step, loss.detach(), learning_rate))

    def read(self) -> None:
        """Wait for the steps that were added, and turn them into rows."""
        if not self._unread:
            return
        losses = torch.stack([loss for _, loss, _ in self._unread]).tolist()
        seconds = time.perf_counter() - self._since
        speed = self.batch * len(losses) / max(seconds, 1e-9)
        for (step, _, rate), loss in zip(self._unread, losses, strict=True):
            self.rows.append(Row(step, loss, rate, float("nan"), speed))
        self._unread.clear()
        self.restart()

    def note(self, accuracy: float) -> None:
        """Note the accuracy on validation after the last step that was read."""
        self.rows[-1] = self.rows[-1]._replace(validation=accuracy)

    def table(self) -> Float[Tensor, "n 5"]:
        """All rows, for a state."""
        return torch.tensor(self.rows, dtype=torch.float64).reshape(-1, len(Row._fields))

    def take(self, table: Sequence[Sequence[float]]) -> None:
        """Go on after the rows of a state."""
        self._unread.clear()
        self.rows = [Row(int(step), *rest) for step, *rest in table]
        self.restart()
