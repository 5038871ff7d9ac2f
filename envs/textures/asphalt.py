"""Dark grey with pale stones, like a road."""

from menagerie.envs.shapes.texture import Texture, color, sigmoid


def _albedo(noise):
    tar = 0.052 + 0.010 * noise[:, 1] + 0.012 * noise[:, 2] + 0.016 * noise[:, 3].clip(-1.5, 2.5)
    stones = 0.30 * sigmoid((noise[:, 2] + noise[:, 3] - 2.2) * 6)
    return (tar.clip(0.010, 0.5) + stones)[:, None].clip(0, 1) * color(0.98, 0.98, 1.0)


TEXTURE = Texture(_albedo, specular=0.06, gloss=12.0)
