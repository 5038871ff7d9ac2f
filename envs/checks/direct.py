"""The oracle: renders one scene directly, all things in one picture of samples and one shadow map."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from menagerie.envs.backgrounds import load_background
from menagerie.envs.checks.drawn import Body, Drawn, Photo, blended, joined
from menagerie.envs.drawing.camera import average, supersampling
from menagerie.envs.drawing.shading import mix
from menagerie.envs.drawing.shadows import visibility
from menagerie.envs.drawing.view import view_of
from menagerie.envs.render.stage import ground, to_bytes
from menagerie.envs.scene import Scene, Thing

LIT = 1 - 1 / 255  # share of the sun below which a shadow touches a sample


class Forward(NamedTuple):
    """An image, its instance mask, the pixels that things or their shadows touch, and how much each thing shows."""

    image: UInt8[np.ndarray, "h w 3"]
    mask: UInt8[np.ndarray, "h w"]
    touched: Bool[np.ndarray, "h w"]
    uncovered: tuple[float, ...]
    """For each thing, the share that the others leave visible."""


def render_forward(scene: Scene, resolution: int, cutouts: Mapping[str, str] | None = None) -> Forward:
    """Render one scene without the atlas. `cutouts`: those of its world, and the hash of each."""
    view, side = view_of(scene.view), supersampling(resolution)
    things = [drawn(thing, scene.view, resolution, cutouts or {}) for thing in scene.things]
    backdrop, light = ground(scene.background, resolution, view), load_background(scene.background).light
    sunlit = visibility(joined([thing.shadows for thing in things]), backdrop.light_points)
    for thing in things:
        sunlit = sunlit * thing.contact(backdrop.light_points)
    layers = [thing.layer(light, joined([o.shadows for o in things if falls_on(o, thing)])) for thing in things]
    picture, shares = blended(mix(backdrop.unlit, backdrop.lit, sunlit), layers)
    touched = average(((sunlit < LIT) | (shares.sum(0) > 0)).astype(np.float32), side) > 0
    visible = (float(share.sum() / layer.alpha.sum()) for share, layer in zip(shares, layers, strict=True))
    return Forward(to_bytes(average(picture, side)), _majority(shares, side), touched, tuple(visible))


def drawn(thing: Thing, view: int, resolution: int, cutouts: Mapping[str, str]) -> Drawn:
    """A thing of a scene, of its kind."""
    digest = cutouts.get(thing.animal)
    return Photo(thing, view, resolution, digest) if digest else Body(thing, view, resolution)


def falls_on(caster: Drawn, receiver: Drawn) -> bool:
    """Whether the shadow of one thing may darken another, or itself."""
    return caster is not receiver or caster.shades_itself


def _majority(shares: Float32[np.ndarray, "things h w"], side: int) -> UInt8[np.ndarray, "h2 w2"]:
    """The thing, or 0, that shows most in each pixel; a thing wins a tie with the background."""
    means = [average(share, side) for share in shares]
    winner = np.argmax([*means, 1 - np.sum(means, 0) - 1e-6], axis=0) + 1
    return np.where(winner > len(shares), 0, winner).astype(np.uint8)
