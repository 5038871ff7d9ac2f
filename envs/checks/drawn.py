"""Things of a scene as the oracle draws them, each at every sample of the image: modelled bodies, and cut-outs."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float32

from menagerie.envs.animals import load_animal
from menagerie.envs.custom.cutouts import load_cutout
from menagerie.envs.drawing.camera import Camera, supersampling
from menagerie.envs.drawing.card import card_of, card_shadow, contact, seen_by
from menagerie.envs.drawing.raster import EMPTY, trace
from menagerie.envs.drawing.shading import Light, mix, shade, skin
from menagerie.envs.drawing.shadows import TEXELS, ShadowMap, receiving_points, shadow_map, visibility
from menagerie.envs.drawing.view import view_of
from menagerie.envs.photographs.surface import lit_and_unlit, skins
from menagerie.envs.render.stage import camera, placed
from menagerie.envs.scene import Thing
from menagerie.envs.textures import load_texture


class Layer(NamedTuple):
    """What the camera sees of one thing alone."""

    alpha: Float32[np.ndarray, "h w"]
    depth: Float32[np.ndarray, "h w"]  # metres along the view axis
    colors: Float32[np.ndarray, "h w 3"]  # display values


class Drawn(Protocol):
    """One thing of a scene."""

    shadows: ShadowMap
    shades_itself: bool

    def contact(self, light_points: Float32[np.ndarray, "h w 3"]) -> Float32[np.ndarray, "h w"]:
        """The share of the sun that it leaves on the ground near its feet."""

    def layer(self, light: Light, shadows: ShadowMap) -> Layer:
        """The thing under a light, in the shadows of a map."""


class Body:
    """A modelled animal."""

    shades_itself = True

    def __init__(self, thing: Thing, number: int, resolution: int) -> None:
        self.thing, self.view = thing, view_of(number)
        self.camera = camera(resolution, self.view)
        self.placed = placed(thing.animal, thing.slot, number, thing.size)
        self.shadows = shadow_map([self.placed], self.view.sun)

    def contact(self, light_points: Float32[np.ndarray, "h w 3"]) -> Float32[np.ndarray, "h w"]:
        """All of it: a body's shadow begins at its feet."""
        return np.ones(light_points.shape[:2], np.float32)

    def layer(self, light: Light, shadows: ShadowMap) -> Layer:
        """See `Drawn`."""
        (samples,) = trace([self.placed], self.camera)
        texture = load_texture(self.thing.texture)
        surface = skin(samples, load_animal(self.thing.animal), self.placed[0], texture, self.view.sun)
        seen = visibility(shadows, receiving_points(samples.world, samples.normals, self.view.sun))
        layer, at = empty_layer(self.camera), (samples.rows, samples.columns)
        layer.alpha[at], layer.depth[at] = 1, samples.depth
        layer.colors[at] = mix(*shade(samples, surface, light, self.view.sun), seen)
        return layer


class Photo:
    """A cut-out, whose flat card throws no shadow on itself."""

    shades_itself = False

    def __init__(self, thing: Thing, number: int, resolution: int, digest: str) -> None:
        self.thing, self.view, self.cutout = thing, view_of(number), load_cutout(digest)
        self.camera, self.side = camera(resolution, self.view), supersampling(resolution)
        self.card = card_of(self.cutout, thing.animal, thing.slot, number, thing.size)
        self.shadows = card_shadow(self.card, self.view.sun)

    def contact(self, light_points: Float32[np.ndarray, "h w 3"]) -> Float32[np.ndarray, "h w"]:
        """See `Drawn`."""
        return contact(self.card, light_points, self.view.sun)

    def layer(self, light: Light, shadows: ShadowMap) -> Layer:
        """See `Drawn`."""
        seen = seen_by(self.camera, self.card, self.side)
        (surface,) = skins(self.card, self.cutout, seen, (self.thing.texture,))
        lit, unlit = lit_and_unlit(self.card, seen, surface, light, self.view)
        normals = np.broadcast_to(self.card.normal, seen.world.shape)
        sunlit = visibility(shadows, receiving_points(seen.world, normals, self.view.sun))
        layer, (height, width) = empty_layer(self.camera), seen.alpha.shape
        top, left = seen.top * self.side, seen.left * self.side
        at = slice(top, top + height), slice(left, left + width)
        layer.alpha[at], layer.depth[at], layer.colors[at] = seen.alpha, seen.depth, mix(unlit, lit, sunlit)
        return layer


def empty_layer(camera: Camera) -> Layer:
    """A layer of nothing."""
    shape = (camera.size, camera.size)
    return Layer(np.zeros(shape, np.float32), np.full(shape, EMPTY, np.float32), np.zeros((*shape, 3), np.float32))


def joined(maps: Sequence[ShadowMap]) -> ShadowMap:
    """One map of several: what is nearest to the sun."""
    depth = np.full((TEXELS, TEXELS), EMPTY, np.float32)
    for its in maps:
        height, width = its.depth.shape
        part = depth[its.row : its.row + height, its.column : its.column + width]
        np.minimum(part, its.depth, out=part)
    return ShadowMap(0, 0, depth)


def blended(
    below: Float32[np.ndarray, "h w 3"], layers: Sequence[Layer]
) -> tuple[Float32[np.ndarray, "h w 3"], Float32[np.ndarray, "things h w"]]:
    """Layers over a picture, the farthest first at every sample, and the share of each sample that each one shows."""
    alphas, depths = (np.stack([layer[part] for layer in layers]) for part in (0, 1))
    order = np.argsort(-depths, axis=0)
    picture, shares = below.copy(), np.zeros_like(alphas)
    for place in range(len(layers)):
        for index, layer in enumerate(layers):
            alpha = np.where(order[place] == index, layer.alpha, 0)
            picture += (layer.colors - picture) * alpha[..., None]
            shares *= 1 - alpha
            shares[index] += alpha
    return picture, shares
