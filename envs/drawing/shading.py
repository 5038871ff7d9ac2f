"""The one shader: lights surfaces by sun, sky and light reflected from the ground, and converts the result to display
values.

A surface has two display colours, lit and unlit. Shadow mixes them *in display space*, both here and in the compositor,
so that factors can be shaded separately and mixed later.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.drawing.raster import Samples
from menagerie.envs.shapes.animal import TAG_COLORS, TAGS, Animal
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.shapes.texture import Texture
from menagerie.envs.shapes.vectors import dot, unit

SUN_STRENGTH = 1.75
SKY_STRENGTH = 1.35
_TAG_TABLE = np.array(list(TAG_COLORS.values()), np.float32)


@dataclass(frozen=True)
class Light:
    """Linear colours of the sun, of the sky above and of the light that the ground reflects."""

    sun: tuple[float, float, float]
    sky: tuple[float, float, float]
    bounce: tuple[float, float, float]

    def ambient(self, up: np.ndarray) -> np.ndarray:
        """Return the light from all around on surfaces; `up` (..., 1) is the vertical component of their normals."""
        share = up * np.float32(0.5) + np.float32(0.5)
        sky, bounce = np.asarray(self.sky, np.float32), np.asarray(self.bounce, np.float32)
        return (sky * share + bounce * (1 - share)) * np.float32(SKY_STRENGTH)

    def direct(self, toward: np.ndarray) -> np.ndarray:
        """Return the sunlight on surfaces; `toward` (..., 1) is the cosine between their normals and the sun."""
        return toward * np.asarray(self.sun, np.float32) * np.float32(SUN_STRENGTH)


def tonemap(linear: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n 3"]:
    """Convert linear light to display values in 0..1, with a soft shoulder."""
    c = linear * np.float32(1.05)
    c = c * (1 + c / 6) / (1 + c * np.float32(0.62))
    return np.clip(c, 0, 1) ** np.float32(1 / 2.2)


def mix(unlit: np.ndarray, lit: np.ndarray, visibility: Float32[np.ndarray, "*n"]) -> np.ndarray:
    """Mix unlit and lit display colours by `visibility`, the share of the sun that reaches each point."""
    return unlit + (lit - unlit) * visibility[..., None]


@dataclass(frozen=True, eq=False)
class Skin:
    """Surface properties at the samples of one textured thing."""

    albedo: Float32[np.ndarray, "n 3"]
    specular: Float32[np.ndarray, "n 1"]
    highlight: Float32[np.ndarray, "n 1"]  # sunlight mirrored towards the eye


def albedo(
    body: Float32[np.ndarray, "n 3"], animal: Animal, mesh: Mesh, texture: Texture
) -> tuple[Float32[np.ndarray, "n 3"], UInt8[np.ndarray, " n"]]:
    """Return linear colour and tag of points on an animal's surface, in body coordinates."""
    colors = texture.colors(body * np.float32(mesh.scale))
    if animal.paint is not None:
        colors = colors * animal.paint(body)[:, None]
    tags = animal.tags(body, 0.4 * mesh.cell)
    return np.where(tags[:, None] > 0, _TAG_TABLE[tags], colors).astype(np.float32), tags


def skin(samples: Samples, animal: Animal, mesh: Mesh, texture: Texture, sun: Float32[np.ndarray, "3"]) -> Skin:
    """Return the surface properties at a thing's samples, from its texture, paint and tagged parts."""
    colors, tags = albedo(samples.body, animal, mesh, texture)
    glossy = tags == TAGS.index("eye")
    specular = np.where(glossy, 0.8, texture.specular).astype(np.float32)[:, None]
    exponent = np.where(glossy, 60.0, texture.gloss).astype(np.float32)
    toward = np.clip(dot(samples.normals, unit(sun + samples.to_eye)), 0, 1)
    return Skin(colors, specular, specular * (toward**exponent)[:, None])


def shade(
    samples: Samples, surface: Skin, light: Light, sun: Float32[np.ndarray, "3"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return unlit and lit display colours (n, 3) of a thing's samples under a sun in direction `sun`."""
    toward = np.clip(dot(samples.normals, sun), 0, 1)[:, None]
    ambient = light.ambient(samples.normals[:, 2:]) * samples.ambient[:, None]
    dark = (surface.albedo + surface.specular * np.float32(0.12)) * ambient
    bright = light.direct(toward) * surface.albedo
    bright += surface.highlight * (toward > 0) * np.asarray(light.sun, np.float32)
    return tonemap(dark), tonemap(dark + bright)
