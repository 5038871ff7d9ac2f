"""The direct renderer: it draws a whole scene at once, with all objects in one shadow map and at every sample of the
image."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from menagerie.envs.catalog import load_background
from menagerie.envs.drawing.camera import Camera, average, supersampling, view_of
from menagerie.envs.drawing.raster import EMPTY
from menagerie.envs.drawing.shading import Light, mix, shade
from menagerie.envs.drawing.shadows import TEXELS, ShadowMap, visibility
from menagerie.envs.render.entry import to_uint8
from menagerie.envs.render.renderables import EntryKey, Renderable, camera, ground, renderable
from menagerie.envs.scene import Scene
from menagerie.envs.world import World

LIT = 1 - 1 / 255  # share of the sun below which a shadow touches a sample


class DirectRendering(NamedTuple):
    """An image, its instance mask, the pixels that objects or their shadows touch, and where each object is and how
    much of it shows."""

    image: UInt8[np.ndarray, "h w 3"]
    mask: UInt8[np.ndarray, "h w"]
    touched: Bool[np.ndarray, "h w"]
    uncovered: tuple[float, ...]
    """For each object, the share of its area that no other object hides."""
    centers: tuple[tuple[float, float, float], ...]
    """For each object, its mean row and column in samples and its mean depth in metres, as if it were alone."""


class Layer(NamedTuple):
    """One object alone, as the camera sees it."""

    alpha: Float32[np.ndarray, "h w"]
    depth: Float32[np.ndarray, "h w"]  # metres along the view axis
    colors: Float32[np.ndarray, "h w 3"]  # display values


def render_directly(scene: Scene, resolution: int, world: World) -> DirectRendering:
    """Render one scene of a world without the atlas."""
    scene, cutouts = world.as_drawn(scene), dict(world.cutouts)
    view, side = view_of(scene.view), supersampling(resolution)
    objects = [renderable(EntryKey.of(obj, scene.view), resolution, cutouts) for obj in scene.objects]
    backdrop, light = ground(scene.background, resolution, view), load_background(scene.background).light
    sunlit = visibility(join_shadow_maps([obj.shadows for obj in objects]), backdrop.light_points)
    for obj in objects:
        sunlit = sunlit * obj.contact(backdrop.light_points)
    layers = []
    for obj, named in zip(objects, scene.objects, strict=True):
        shadows = join_shadow_maps([other.shadows for other in objects if other is not obj or obj.shades_itself])
        layers.append(draw_alone(obj, named.texture, light, shadows, camera(resolution, view)))
    picture, shares = blend_layers(mix(backdrop.unlit, backdrop.lit, sunlit), layers)
    touched = average(((sunlit < LIT) | (shares.sum(0) > 0)).astype(np.float32), side) > 0
    visible = (float(share.sum() / layer.alpha.sum()) for share, layer in zip(shares, layers, strict=True))
    mask, centers = _majority(shares, side), tuple(center(layer) for layer in layers)
    return DirectRendering(to_uint8(average(picture, side)), mask, touched, tuple(visible), centers)


def draw_alone(obj: Renderable, texture: str, light: Light, shadows: ShadowMap, seen_by: Camera) -> Layer:
    """Draw one object as the camera sees it without the others: in a texture, under a light, with the shadows of a
    map."""
    samples, shape = obj.samples, (seen_by.size, seen_by.size)
    lit, unlit = shade(samples, obj.skin(texture), [light], seen_by.view.sun).reshape(2, 3, -1).swapaxes(1, 2)
    empty = np.zeros(shape, np.float32), np.full(shape, EMPTY, np.float32), np.zeros((*shape, 3), np.float32)
    colors = mix(unlit, lit, visibility(shadows, obj.light_points))
    for canvas, values in zip(empty, (samples.alpha, samples.depth, colors), strict=True):
        canvas[samples.rows, samples.columns] = values
    return Layer(*empty)


def center(layer: Layer) -> tuple[float, float, float]:
    """Return an object's mean row and column in samples, and its mean depth in metres."""
    rows, columns = np.nonzero(layer.alpha)
    return float(rows.mean()), float(columns.mean()), float(layer.depth[rows, columns].mean())


def join_shadow_maps(maps: Sequence[ShadowMap]) -> ShadowMap:
    """Merge several shadow maps: at each point, the surface nearest to the sun counts."""
    depth = np.full((TEXELS, TEXELS), EMPTY, np.float32)
    for shadows in maps:
        height, width = shadows.depth.shape
        part = depth[shadows.row : shadows.row + height, shadows.column : shadows.column + width]
        np.minimum(part, shadows.depth, out=part)
    return ShadowMap(0, 0, depth)


def blend_layers(
    below: Float32[np.ndarray, "h w 3"], layers: Sequence[Layer]
) -> tuple[Float32[np.ndarray, "h w 3"], Float32[np.ndarray, "objects h w"]]:
    """Draw layers over a picture, at every sample the farthest first. Returns the picture, and for each layer the share
    of each sample in which it shows."""
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


def _majority(shares: Float32[np.ndarray, "objects h w"], side: int) -> UInt8[np.ndarray, "h2 w2"]:
    """Return for each pixel the number of the object that shows most in it, from 1, or 0 for the background. An object
    wins a tie with the background."""
    means = [average(share, side) for share in shares]
    winner = np.argmax([*means, 1 - np.sum(means, 0) - 1e-6], axis=0) + 1
    return np.where(winner > len(shares), 0, winner).astype(np.uint8)
