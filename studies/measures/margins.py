"""How many bits margins of scores carry about a binary question, such as which of two captions is true."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.measured import Measured, share_right

SCALES = (-9.0, 9.0)  # natural logarithms of the scales that are tried, for margins whose mean size is 1


class MarginBits(NamedTuple):
    """What margins of scenes carry."""

    bits: Measured
    scene: Measured
    """Share of scenes with a positive margin; a tie counts one half."""


def margin_bits(margins: Float[np.ndarray, "..."]) -> MarginBits:
    return MarginBits(bits(margins), share_right(margins))


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


def exclusive_or(one: Float[np.ndarray, "*n"], two: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return the log-odds that two binary variables are equal, 2 atanh(tanh(a / 2) tanh(t / 2)) of their log-odds."""
    return np.logaddexp(0, one + two) - np.logaddexp(one, two)
