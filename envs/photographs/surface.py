"""The colours of a cut-out under a background's light: its own, or a texture's that is as bright as the photograph."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.card import Card, Seen
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.raster import Samples
from menagerie.envs.drawing.shading import Light, Skin, shade
from menagerie.envs.drawing.view import View
from menagerie.envs.photographs.picture import LUMINANCE
from menagerie.envs.shapes.texture import Texture
from menagerie.envs.shapes.vectors import unit
from menagerie.envs.textures import load_texture

# A photograph's contrast on a texture: the whole would leave nothing of the texture where the photograph is dark.
CONTRAST, BRIGHTEST = 0.7, 2.2
LEAN = 0.35  # how far the lit side of a card turns up, so that a sun behind the camera lights it as it does a body
FOOT = 0.15  # share of the height over which the ground darkens what stands on it


def skins(card: Card, cutout: Cutout, seen: Seen, textures: tuple[str, ...]) -> Iterator[Skin]:
    """The card's surface in each of the world's textures; all its own colours where the cut-out is natural."""
    flat = seen.colors.reshape(-1, 3)
    none = np.zeros((len(flat), 1), np.float32)
    relative = brightness(card, flat)
    for name in textures:
        albedo = flat if cutout.natural else painted(load_texture(name), seen.body.reshape(-1, 3), relative)
        yield Skin(albedo.astype(np.float32), none, none)


def brightness(card: Card, colors: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, " n"]:
    """Luminance of colours relative to the photograph's mean, with less contrast."""
    share = np.maximum(colors @ LUMINANCE, 0) / np.float32(card.photograph.luminance)
    return np.clip(share ** np.float32(CONTRAST), 0, BRIGHTEST).astype(np.float32)


def painted(
    texture: Texture, body: Float32[np.ndarray, "n 3"], relative: Float32[np.ndarray, " n"]
) -> Float32[np.ndarray, "n 3"]:
    """A texture's colours at points in metres, each as bright as the photograph is there."""
    return np.clip(texture.colors(body) * relative[:, None], 0, 1)


def lit_and_unlit(card: Card, seen: Seen, surface: Skin, light: Light, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Display colours (h, w, 3) of what is seen of a card, in the sun and out of it."""
    count, shape = seen.alpha.size, seen.alpha.shape
    normal = unit(card.normal + np.array([0, 0, LEAN], np.float32))
    up = np.clip(seen.body[..., 2].reshape(-1) * card.scale / card.height / FOOT, 0, 1)
    world = seen.world.reshape(-1, 3)
    samples = Samples(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        seen.depth.reshape(-1),
        seen.body.reshape(-1, 3),
        world,
        np.broadcast_to(normal, world.shape).astype(np.float32),
        unit(view.eye - world),
        (np.float32(0.7) + np.float32(0.3) * up).astype(np.float32),
    )
    unlit, lit = shade(samples, surface, light, view.sun)
    return lit.reshape(*shape, 3), unlit.reshape(*shape, 3)
