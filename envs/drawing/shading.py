"""The one shader: lights surfaces by sun, sky and light reflected from the ground, and converts the result to display
values.

A surface has two display colours, lit and unlit. Shadow mixes them *in display space*, both here and in the compositor,
so that factors can be shaded separately and mixed later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8
from numba import njit

from menagerie.envs.drawing.raster import Samples
from menagerie.envs.shapes.animal import TAG_COLORS, TAGS, Animal
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.shapes.texture import Texture
from menagerie.envs.shapes.vectors import dot

SUN_STRENGTH = 1.75
SKY_STRENGTH = 1.35
GAMMA = np.float32(1 / 2.2)
ZERO, HALF, ONE, SIX, SHEEN = map(np.float32, (0, 0.5, 1, 6, 0.12))
SUN, SKY = np.float32(SUN_STRENGTH), np.float32(SKY_STRENGTH)
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
    shown = c / 6
    shown += 1  # in place: memory is what takes the time
    shown *= c
    c *= np.float32(0.62)
    c += 1
    shown /= c
    np.clip(shown, 0, 1, out=shown)
    return np.power(shown, GAMMA, out=shown)


def mix(unlit: np.ndarray, lit: np.ndarray, visibility: Float32[np.ndarray, "*n"]) -> np.ndarray:
    """Mix unlit and lit display colours by `visibility`, the share of the sun that reaches each point."""
    return unlit + (lit - unlit) * visibility[..., None]


@dataclass(frozen=True, eq=False)
class Skin:
    """Surface properties at the samples of one textured object."""

    albedo: Float32[np.ndarray, "n 3"]
    specular: Float32[np.ndarray, " n"]
    highlight: Float32[np.ndarray, " n"]  # sunlight mirrored towards the eye


def albedo(
    body: Float32[np.ndarray, "n 3"], tags: UInt8[np.ndarray, " n"], animal: Animal, mesh: Mesh, texture: Texture
) -> Float32[np.ndarray, "n 3"]:
    """Return the linear colours of points on an animal's surface, in body coordinates, with the given tags."""
    colors = texture.colors(body * np.float32(mesh.scale))
    if animal.paint is not None:
        colors = colors * animal.paint(body)[:, None]
    colors, tagged = np.array(colors, np.float32), np.flatnonzero(tags)
    colors[tagged] = _TAG_TABLE[tags[tagged]]
    return colors


def skin(
    colors: Float32[np.ndarray, "n 3"],
    tags: UInt8[np.ndarray, " n"],
    texture: Texture,
    mirrored: Float32[np.ndarray, " n"],
) -> Skin:
    """Return the surface properties at samples of these linear colours and tags; `mirrored` is the cosine between the
    normal and the direction halfway between sun and eye."""
    glossy = tags == TAGS.index("eye")
    specular = np.where(glossy, 0.8, texture.specular).astype(np.float32)
    exponent = np.where(glossy, 60.0, texture.gloss).astype(np.float32)
    return Skin(colors, specular, specular * mirrored**exponent)


def shade(
    samples: Samples, surface: Skin, lights: Sequence[Light], sun: Float32[np.ndarray, "3"]
) -> Float32[np.ndarray, "lights 6 n"]:
    """Return lit and unlit display colours of an object's samples in each light, under a sun in direction `sun`."""
    toward = np.clip(dot(samples.normals, sun), 0, 1)
    colors = np.array([(light.sun, light.sky, light.bounce) for light in lights], np.float32)
    out = np.empty((len(lights), 6, len(toward)), np.float32)
    normals_up, planes = np.ascontiguousarray(samples.normals[:, 2]), np.ascontiguousarray(surface.albedo.T)
    highlight = surface.highlight * (toward > 0)
    matte = planes + surface.specular * SHEEN
    _shade(colors, planes, matte, highlight, normals_up, toward, samples.ambient, out)
    return np.power(out, GAMMA, out=out)


@njit(cache=True, nogil=True, error_model="numpy")  # else a test for zero in each division hinders vectorisation
def _shade(lights, albedo, matte, highlight, up, toward, ambient, out):  # pragma: no cover
    """Fill `out` with what `shade` returns, before the power, which numpy rounds in its own way.

    `matte` is the albedo with the sheen that ambient light gets. All is in float32, in the order of `Light` and
    `tonemap`. The loops over samples are short, because a loop over more arrays isn't vectorised.
    """
    n = len(up)
    for k in range(lights.shape[0]):
        for c in range(3):
            sun, sky, bounce = lights[k, 0, c], lights[k, 1, c], lights[k, 2, c]
            lit, unlit, plain, dull = out[k, c], out[k, 3 + c], albedo[c], matte[c]
            for i in range(n):
                share = up[i] * HALF + HALF
                unlit[i] = dull[i] * ((sky * share + bounce * (ONE - share)) * SKY * ambient[i])
            for i in range(n):
                lit[i] = unlit[i] + (toward[i] * sun * SUN * plain[i] + highlight[i] * sun)
            for shown in (lit, unlit):
                for i in range(n):
                    shown[i] = _shoulder(shown[i])


@njit(inline="always")
def _shoulder(linear):  # pragma: no cover
    c = linear * np.float32(1.05)
    c = c * (ONE + c / SIX) / (ONE + c * np.float32(0.62))
    c = ZERO if c < ZERO else c
    return ONE if c > ONE else c
