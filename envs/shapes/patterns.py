"""Patterns of textures: black bands, or none. "Banded red" is the texture `red` in the pattern `banded`.

To add a pattern, add an entry to `PATTERNS`, of one word: worlds can then name every texture in it.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

# Changes the linear colours (n, 3) of points (n, 3) in metres.
Pattern = Callable[[Float32[np.ndarray, "n 3"], Float32[np.ndarray, "n 3"]], Float32[np.ndarray, "n 3"]]
BLACK = 0.012  # linear
BAND = 0.15  # metres


def add_bands(points: Float32[np.ndarray, "n 3"], colors: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
    """Return the colours with horizontal black bands, as broad as the colour between them."""
    black = np.floor(points[:, 2] / np.float32(BAND)).astype(np.int64) % 2 == 1
    return np.where(black[:, None], np.float32(BLACK), colors)


PATTERNS: dict[str, Pattern | None] = {"plain": None, "banded": add_bands}


def lay_over(under: Pattern | None, name: str) -> Pattern | None:
    """Return the pattern `name` laid over a texture's own; either may be None."""
    upper = PATTERNS[name]
    if upper is None or under is None:
        return upper or under
    return lambda points, colors: upper(points, under(points, colors))
