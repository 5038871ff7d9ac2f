"""Products of many points, with a small matrix or with one another, and their unit vectors.

They are written out rather than with `@`, because BLAS would start threads, and the last bit of its results may depend
on the number of points.
"""

import numpy as np
from jaxtyping import Float32
from numba import njit


def transform(matrix: np.ndarray, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Multiply each point by a 3 x 3 matrix."""
    flat = np.ascontiguousarray(points).reshape(-1, 3)
    out = np.empty_like(flat)
    _transform(np.asarray(matrix, np.float32), flat, out)
    return out.reshape(points.shape)


@njit(cache=True, nogil=True)
def _transform(matrix, points, out):  # pragma: no cover
    for i in range(points.shape[0]):
        for k in range(3):
            out[i, k] = points[i, 0] * matrix[k, 0] + points[i, 1] * matrix[k, 1] + points[i, 2] * matrix[k, 2]


def dot(a: Float32[np.ndarray, "*n 3"], b: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
    """Dot product of each pair of vectors."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def unit(vectors: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Scale vectors to length 1; zero vectors stay zero."""
    return vectors / np.maximum(np.sqrt(dot(vectors, vectors)), np.float32(1e-9))[..., None]
