"""What a texture is: a colour that noise varies, and how it shines."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from menagerie.envs.shapes.noise import noise


@dataclass(frozen=True)
class Texture:
    """`albedo` maps noise, coarse to fine (`menagerie.envs.shapes.noise`), to linear colour in 0..1."""

    albedo: Callable[[Float32[np.ndarray, "n 4"]], Float32[np.ndarray, "n 3"]]
    specular: float  # strength of the highlight
    gloss: float  # its sharpness: the exponent of Blinn and Phong

    def colors(self, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
        """Linear colours of points in metres."""
        return self.albedo(noise(points))


def color(red: float, green: float, blue: float) -> Float32[np.ndarray, "3"]:
    """A linear colour as an array."""
    return np.array([red, green, blue], np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Soft step from 0 to 1 around 0."""
    return 1 / (1 + np.exp(-x))
