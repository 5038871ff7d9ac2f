"""A measured number with its chance level, or the reason why there is none; and what margins of scores tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from menagerie.envs.core.errors import UserError

SCALES = (-9.0, 9.0)  # natural logarithms of the scales that are tried, for margins whose mean size is 1
Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The result of a measure on an embedding."""

    value: float | None
    """The number; None if it is refused."""
    chance: float | None
    """The number for an embedding without any information on what is measured."""
    refused: str = ""
    """Why there is no number."""

    def row(self, **place: str) -> Row:
        """Return a row of a table: what the number is of, value, chance, refused. Raises for a number that is not
        finite."""
        numbers = {name: its if its is None else float(its) for name, its in vars(self).items() if name != "refused"}
        if not np.isfinite([its for its in numbers.values() if its is not None]).all():
            raise ValueError(f"{place} is {numbers}")
        return place | numbers | {"refused": self.refused}


def no_number(reason: str, chance: float | None = None) -> Measured:
    return Measured(None, chance, reason)


def share_right(margins: Float[np.ndarray, "..."]) -> Measured:
    """Return the share of choices between two that are right, with a positive margin; a margin of 0 is one half."""
    return Measured(float(np.heaviside(margins, 0.5).mean(dtype=float)), 0.5)


def bits(margins: Float[np.ndarray, "..."]) -> Measured:
    """Return the bits of margins m: 1 - min over b >= 0 of mean log2(1 + exp(-b m)). Chance is 0, and 1 is all.

    A margin is positive if the answer to a binary question is right. The bits are a lower bound of the mutual
    information between answer and margin: the question's entropy minus the loss of a reader (2606.03976). Ours
    conditions on which objects and textures a scene has, so that exactly 1 bit is left. Margins are those of held-out
    probes, or s(x, c) - s(x, c') of any scorer for an image x, its caption c and the swapped caption c'. Only b is
    fitted to them, which adds less than 0.001 bit for a thousand margins.
    """
    flat = np.asarray(margins, np.float64).reshape(-1)
    if not len(flat) or not np.isfinite(flat).all():
        raise UserError("there must be margins of scenes, all of them finite")
    if (flat > 0).all():
        return Measured(1.0, 0.0)  # what a growing b tends to
    flat = flat / (np.abs(flat).mean() or 1.0)

    def loss(log_scale: float) -> float:
        return float(np.logaddexp(0, -np.exp(log_scale) * flat).mean())

    found = minimize_scalar(loss, bounds=SCALES, method="bounded", options={"xatol": 1e-4})
    return Measured(max(0.0, 1 - float(found.fun) / np.log(2)), 0.0)


def label_rows(part: str, layer: str, read: str, found: tuple[Measured, ...]) -> Iterator[Row]:
    """Yield a row (part, layer, read, measure, value, chance, refused) for each number of a result, a named tuple."""
    for name, its in found._asdict().items():
        yield its.row(part=part, layer=layer, read=read, measure=name)
