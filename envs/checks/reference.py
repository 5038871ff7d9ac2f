"""The oracle: renders one scene directly, all things in one depth buffer and one shadow map."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, UInt8

from envs.animals import load_animal
from envs.atlas.stage import camera, ground, placed, to_bytes
from envs.backgrounds import load_background
from envs.drawing.camera import average, supersampling
from envs.drawing.raster import trace
from envs.drawing.shading import mix, shade, skin
from envs.drawing.shadows import receiving_points, shadow_map, visibility
from envs.drawing.view import view_of
from envs.scene import Scene
from envs.textures import load_texture


class Forward(NamedTuple):
    """An image, its instance mask, and the pixels that things or their shadows touch."""

    image: UInt8[np.ndarray, "h w 3"]
    mask: UInt8[np.ndarray, "h w"]
    touched: Bool[np.ndarray, "h w"]


def render_forward(scene: Scene, resolution: int) -> Forward:
    """Render one scene without the atlas."""
    view = view_of(scene.view)
    things = [placed(thing.animal, thing.slot, scene.view, thing.size) for thing in scene.things]
    backdrop, light = ground(scene.background, resolution, view), load_background(scene.background).light
    shadows = shadow_map(things, view.sun)
    sunlit = visibility(shadows, backdrop.light_points)
    picture = mix(backdrop.unlit, backdrop.lit, sunlit)
    owner = np.zeros(sunlit.shape, np.uint8)
    for index, (thing, (mesh, _), samples) in enumerate(
        zip(scene.things, things, trace(things, camera(resolution, view)), strict=True), start=1
    ):
        surface = skin(samples, load_animal(thing.animal), mesh, load_texture(thing.texture), view.sun)
        seen = visibility(shadows, receiving_points(samples.world, samples.normals, view.sun))
        picture[samples.rows, samples.columns] = mix(*shade(samples, surface, light, view.sun), seen)
        owner[samples.rows, samples.columns] = index
    side = supersampling(resolution)
    touched = average(((sunlit < 1) | (owner > 0)).astype(np.float32), side) > 0
    return Forward(to_bytes(average(picture, side)), _majority(owner, len(things), side), touched)


def _majority(owner: UInt8[np.ndarray, "h w"], things: int, side: int) -> np.ndarray:
    """The owner of most of each pixel's samples; a thing wins a tie with the background."""
    shares = [average((owner == index).astype(np.float32), side) for index in (*range(1, things + 1), 0)]
    winner = np.argmax(shares, axis=0) + 1
    return np.where(winner > things, 0, winner).astype(np.uint8)
