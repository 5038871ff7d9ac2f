"""Brown with darker grain, like oiled wood."""

import numpy as np

from menagerie.envs.shapes.texture import Texture, color


def _albedo(noise):
    grain = 0.5 + 0.5 * np.sin(5 * noise[:, :1] + 1.2 * noise[:, 1:2])
    return (color(0.30, 0.13, 0.045) * (1 - grain) + color(0.12, 0.045, 0.014) * grain).clip(0, 1)


TEXTURE = Texture(_albedo, specular=0.15, gloss=25.0)
