"""White with blue dots, like a table cloth."""

from dataclasses import replace

import numpy as np

from menagerie.envs.shapes.texture import balls, color
from menagerie.envs.textures.colors import TEXTURE_WHITE


def _dots(points, colors):
    return np.where(balls(points, 0.095, 0.24)[:, None], color(0.015, 0.07, 0.60), colors)


TEXTURE = replace(TEXTURE_WHITE, pattern=_dots)
