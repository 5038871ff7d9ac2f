"""Ocean floor: sand under dancing light, blue-green fog, weeds, corals and a rock."""

import numpy as np

from menagerie.envs.drawing.background import (
    Backdrop,
    Background,
    Prop,
    Rays,
    blend,
    draw_ground,
    fog,
    ground_noise,
    set_props,
    smoothstep,
    tint,
)
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid
from menagerie.envs.shapes.texture import color, noise


def _weed(lean: float) -> tuple[Capsules, ...]:
    """Three blades that wave."""
    heights = np.linspace(0, 1, 9)
    return tuple(
        Capsules(
            [(0.02, y + lean * 0.10 * np.sin(5 * h + 9 * y), h * (1.5 + 0.5 * y)) for h in heights],
            list(0.05 + 0.085 * np.sin(np.pi * np.sqrt(heights) * 0.95)),
            blend=0.02,
            squash=(0.8, 0.6, 1),
        )
        for y in (0.05, 0.3, 0.55)
    )


_CORAL = (
    Capsules([(0, 0, 0), (0, 0.1, 0.35), (0.1, 0.35, 0.75)], [0.11, 0.09, 0.07]),
    Capsules([(0, 0.1, 0.3), (0.2, 0.15, 0.7)], [0.08, 0.06]),
    Capsules([(0, 0.05, 0.2), (-0.25, 0.25, 0.55)], [0.08, 0.06]),
)
_ROCK = (
    Ellipsoid((0, 0, 0.05), (0.62, 0.45, 0.36), (20, 8, 0)),
    Ellipsoid((0.42, 0.1, 0.0), (0.38, 0.4, 0.24), (-30, 0, 10)),
    Ellipsoid((-0.36, -0.1, 0.22), (0.22, 0.25, 0.26), (0, 25, 0)),
)
_PROPS = (
    Prop(_weed(1), (-2.7, 3.4, 0), 0.9, (0.05, 0.26, 0.07)),
    Prop(_weed(-1), (2.45, 3.6, 0), 1.0, (0.06, 0.30, 0.09)),
    Prop(_CORAL, (1.5, 4.4, 0), 1.2, (0.62, 0.16, 0.13)),
    Prop(_CORAL, (-1.2, 5.0, 0), 1.2, (0.70, 0.40, 0.08)),
    Prop(_ROCK, (0.3, 5.4, 0), 0.9, (0.16, 0.17, 0.17)),
)


def _water(rays: Rays) -> np.ndarray:
    deep = blend(color(0.01, 0.10, 0.17), color(0.10, 0.46, 0.56), smoothstep(-0.35, 0.25, rays.height))
    beams = np.stack([rays.azimuth * 0.25 + rays.height * 0.12, 0 * rays.azimuth, 0 * rays.azimuth], -1)
    strength = np.clip(noise(beams)[..., 1], 0, 3) * smoothstep(-0.15, 0.25, rays.height)
    return deep + tint(color(0.02, 0.07, 0.07), strength)


def _seabed(rays: Rays) -> np.ndarray:
    distance, fine, wide = rays.to_ground(), ground_noise(rays, 0.5), ground_noise(rays, 0.06)
    ripples = np.sin(rays.at(distance)[..., 1] * 6 + 2 * wide[..., 0]) * _nearness(distance)
    return tint(color(0.46, 0.42, 0.30), 1 + 0.06 * fine[..., 2] + 0.10 * ripples)


def _nearness(distance: np.ndarray) -> np.ndarray:
    return np.clip(1.4 - distance / 14, 0, 1)


def _draw(rays: Rays, light: Light) -> Backdrop:
    water, waves = _water(rays), ground_noise(rays, 0.11)
    backdrop = draw_ground(rays, light, np.full_like(rays.height, 1e4), lambda some: water[some.rows], _seabed)
    caustics = np.exp(-np.abs(waves[..., 0] + 0.6 * waves[..., 1]) * 5) * _nearness(rays.to_ground())
    backdrop.direct = tint(backdrop.direct, 0.75 + 1.1 * caustics)
    set_props(backdrop, rays, light, _PROPS)
    fog(backdrop, water, 1 - np.exp(-backdrop.distance / 11), backdrop.distance < 60)
    return backdrop


BACKGROUND = Background(Light((0.62, 0.88, 0.95), (0.20, 0.36, 0.46), (0.14, 0.22, 0.22)), _draw)
