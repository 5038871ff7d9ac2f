"""White with blue dots, like a table cloth."""

import numpy as np

from menagerie.envs.shapes.texture import Texture, balls, color


def _albedo(noise):
    return (color(0.66, 0.655, 0.64) * (1 + 0.03 * noise[:, 1:2])).clip(0, 1)


def _dots(points, colors):
    return np.where(balls(points, 0.095, 0.24)[:, None], color(0.015, 0.07, 0.60), colors)


TEXTURE = Texture(_albedo, specular=0.12, gloss=30.0, pattern=_dots)
