"""A measured number with its chance level, or the reason why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Measured:
    """The result of a measure on an embedding."""

    value: float | None
    """The number; None if it is refused."""
    chance: float | None
    """The number for an embedding without any information on what is measured."""
    refused: str = ""
    """Why there is no number."""

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.refused):
            raise ValueError("a measure has either a value or a reason why it has none")
        for name in ("value", "chance"):
            number = getattr(self, name)
            if number is not None and not np.isfinite(number):
                raise ValueError(f"{name} is {number}")
            object.__setattr__(self, name, None if number is None else float(number))


def no_number(reason: str, chance: float | None = None) -> Measured:
    return Measured(None, chance, reason)


def share_right(margins: Float[np.ndarray, "..."]) -> Measured:
    """Return the share of choices between two that are right, with a positive margin; a margin of 0 is one half."""
    return Measured(np.heaviside(margins, 0.5).mean(dtype=float), 0.5)


def rows_of_result(found: tuple) -> Iterator[dict[str, Any]]:
    """Yield a row (measure, value, chance, refused) for each number of a measure's result, a named tuple."""
    for name, measured in found._asdict().items():
        yield {"measure": name, "value": measured.value, "chance": measured.chance, "refused": measured.refused}


def label_rows(part: str, layer: str, read: str, found: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result, with the part, the layer and the read-out that it is of."""
    yield from ({"part": part, "layer": layer, "read": read} | row for row in rows_of_result(found))
