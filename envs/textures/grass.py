"""Green in dark and yellowish patches, like a lawn."""

from menagerie.envs.shapes.texture import Texture, color, sigmoid


def _albedo(noise):
    blades = (0.5 + 0.22 * noise[:, 2] + 0.25 * noise[:, 3]).clip(0, 1.2)[:, None]
    dry = sigmoid((noise[:, :1] + noise[:, 1:2] - 0.9) * 3)
    green = color(0.05, 0.18, 0.018) * (0.35 + 1.3 * blades)
    return (green * (1 - 0.45 * dry) + color(0.20, 0.26, 0.03) * (0.45 * dry) * (0.4 + blades)).clip(0, 1)


TEXTURE = Texture(_albedo, specular=0.03, gloss=8.0)
