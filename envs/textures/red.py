"""Glossy red, like toy plastic."""

from menagerie.envs.shapes.texture import Texture, color


def _albedo(noise):
    return (color(0.62, 0.018, 0.018) * (1 + 0.06 * noise[:, 1:2])).clip(0, 1)


TEXTURE = Texture(_albedo, specular=0.35, gloss=60.0)
