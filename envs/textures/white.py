"""Matt white, like plaster."""

from menagerie.envs.shapes.texture import Texture, color


def _albedo(noise):
    return (color(0.66, 0.655, 0.64) * (1 + 0.03 * noise[:, 1:2])).clip(0, 1)


TEXTURE = Texture(_albedo, specular=0.12, gloss=30.0)
