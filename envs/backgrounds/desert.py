"""Desert: rippled sand, two lines of dunes, cacti and a rock."""

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
    paint,
    set_props,
    smoothstep,
    tint,
)
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.sdf import Capsules, Ellipsoid
from menagerie.envs.shapes.texture import color, noise

_CACTUS = (
    Capsules([(0, 0, 0), (0, 0, 1.9)], [0.2, 0.18]),
    Capsules([(0, 0.12, 0.9), (0, 0.55, 0.95), (0, 0.58, 1.45)], [0.11, 0.11, 0.11], blend=0.05),
)
_ROCK = (Ellipsoid((0, 0, 0.1), (0.6, 0.45, 0.3)),)
_PROPS = (
    Prop(_CACTUS, (-2.6, 4.6, 0), 1.0, (0.07, 0.17, 0.05)),
    Prop(_CACTUS, (3.1, 6.2, 0), 1.2, (0.08, 0.18, 0.06)),
    Prop(_ROCK, (2.0, 4.2, 0), 0.7, (0.35, 0.24, 0.15)),
)
_DUNES = ((1.5, 0.070, (0.60, 0.44, 0.28)), (0.84, 0.030, (0.66, 0.47, 0.26)))


def _sky_and_dunes(rays: Rays) -> np.ndarray:
    picture = blend(color(0.62, 0.70, 0.74), color(0.12, 0.32, 0.80), smoothstep(-0.02, 0.20, rays.height))
    for index, (stretch, height, sand) in enumerate(_DUNES):
        along = np.stack([rays.azimuth * stretch, np.full_like(rays.azimuth, index * 0.3), 0 * rays.azimuth], -1)
        crest = height * (0.55 + 0.3 * noise(along)[..., 0])
        shade = 0.75 + 0.25 * np.tanh(2 * noise(along + color(0.01, 0, 0))[..., 0] + 10 * (crest - rays.height))
        picture = paint(picture, rays.height < crest, tint(color(*sand), shade))
    return picture


def _sand(rays: Rays) -> np.ndarray:
    distance = rays.to_ground()
    ground, wide, fine = rays.at(distance), ground_noise(rays, 0.06), ground_noise(rays, 0.5)
    ripples = np.sin(ground[..., 1] * 16 + 3 * wide[..., 1] + 2.2 * np.sin(ground[..., 0] * 0.8))
    ripples = ripples * np.clip(1.4 - distance / 14, 0, 1)
    tone = 1 + 0.10 * ripples + 0.04 * fine[..., 3] + 0.10 * wide[..., 0]
    return tint(color(0.54, 0.37, 0.19), tone)


def _draw(rays: Rays, light: Light) -> Backdrop:
    backdrop = draw_ground(rays, light, np.full_like(rays.height, 1e4), _sky_and_dunes, _sand)
    haze = 0.8 * smoothstep(18, 60, backdrop.distance)
    fog(backdrop, color(0.80, 0.66, 0.46), haze, backdrop.distance < 60)
    set_props(backdrop, rays, light, _PROPS)
    return backdrop


BACKGROUND = Background(Light((1.25, 1.12, 0.92), (0.36, 0.42, 0.52), (0.30, 0.24, 0.16)), _draw)
