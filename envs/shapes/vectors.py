"""Products of many points, with a small matrix or with one another, and their unit vectors.

They are written out rather than with `@`, because BLAS would start threads, and the last bit of its results may depend
on the number of points.
"""

import numpy as np
from jaxtyping import Float32


def transform(matrix: np.ndarray, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Multiply each point by a 3 x 3 matrix."""
    return np.stack(coordinates(matrix, points), axis=-1)


def coordinates(matrix: np.ndarray, points: Float32[np.ndarray, "*n 3"]) -> list[Float32[np.ndarray, "*n"]]:
    """Return each coordinate of the points, multiplied by a 3 x 3 matrix."""
    x, y, z = (points[..., axis].copy() for axis in range(3))  # long rows: five times as fast as rows of three
    return [x * a + y * b + z * c for a, b, c in np.asarray(matrix, np.float32)]


def store_in_planes(coordinates: np.ndarray) -> np.ndarray:
    """Return an array (..., n) for the array or list (n, ...), in whose memory each coordinate lies by itself: numpy
    works several times as fast on such long rows as on rows of three."""
    return np.moveaxis(np.asarray(coordinates), 0, -1)


def dot(a: Float32[np.ndarray, "*n 3"], b: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
    """Dot product of each pair of vectors."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def normalize(vectors: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Scale vectors to length 1; zero vectors stay zero."""
    return vectors / np.maximum(np.sqrt(dot(vectors, vectors)), np.float32(1e-9))[..., None]


def rotation(yaw: float, pitch: float, roll: float) -> Float32[np.ndarray, "3 3"]:
    """Return the matrix of a turn in degrees: first about x (roll), then about y (pitch), then about z (yaw)."""
    (cy, cp, cr), (sy, sp, sr) = (f(np.radians([yaw, pitch, roll])) for f in (np.cos, np.sin))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    return (about_z @ about_y @ about_x).astype(np.float32)
