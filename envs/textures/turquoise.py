"""Turquoise, like glazed clay."""

from menagerie.envs.shapes.texture import Texture, color


def _albedo(noise):
    return (color(0.01, 0.42, 0.40) * (1 + 0.06 * noise[:, 1:2])).clip(0, 1)


TEXTURE = Texture(_albedo, specular=0.3, gloss=50.0)
