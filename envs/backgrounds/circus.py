"""Circus: a ring of sawdust with a starred kerb, a dark curtain, a striped tent."""

import numpy as np

from menagerie.envs.drawing.background import (
    Backdrop,
    Background,
    Rays,
    draw_ground,
    fraction,
    ground_noise,
    paint,
    smoothstep,
    tint,
)
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.texture import color

_TENT, _RING = 8.0, 4.8  # radii in metres
_KERB = 0.5  # metres high


def _tent(rays: Rays) -> np.ndarray:
    point = rays.at(rays.to_ring(_TENT))
    height, around = point[..., 2], np.arctan2(point[..., 0], point[..., 1] - 1) * 14
    tone = 0.55 + 0.45 * smoothstep(6, 1, height) + 0.1 * np.sin(around) ** 2
    red = np.floor(around / np.pi) % 2 == 0
    picture = paint(tint(color(0.72, 0.66, 0.52), tone), red, tint(color(0.50, 0.03, 0.03), tone))
    hem = 1.55 + 0.24 * np.abs(np.sin(around))
    curtain = tint(color(0.10, 0.035, 0.03), 1 + 0.5 * np.sin(around * 40 / 14))
    picture = paint(picture, (height < 2.1) & (height > hem - 0.2), color(0.72, 0.48, 0.06))
    return paint(picture, height <= hem - 0.2, curtain)


def _kerb(rays: Rays, picture: np.ndarray) -> np.ndarray:
    point = rays.at(rays.to_ring(_RING))
    height, around = point[..., 2], np.arctan2(point[..., 0], point[..., 1] - 1) * 12 / np.pi
    star = ((fraction(around) - 0.5) * 1.3) ** 2 + (height - 0.25) ** 2 * 5 < 0.09
    blue, kerb = np.floor(around) % 2 == 0, (height < _KERB) & (height > 0)
    picture = paint(picture, kerb & blue, color(0.06, 0.12, 0.45) * 0.9)
    picture = paint(picture, kerb & ~blue, color(0.55, 0.04, 0.05) * 0.9)
    return paint(picture, kerb & star, color(0.85, 0.62, 0.10) * 0.9)


def _tent_and_lamps(rays: Rays) -> np.ndarray:
    picture = _kerb(rays, _tent(rays))
    for side in (-1, 1):
        beam = np.exp(-(((rays.azimuth + side * (0.24 - rays.height * 0.55)) / 0.05) ** 2))
        picture = picture + tint(color(1, 0.9, 0.65), 0.10 * beam * smoothstep(-0.15, 0.2, rays.height))
    return picture


def _sawdust(rays: Rays) -> np.ndarray:
    fine, wide = ground_noise(rays, 0.5), ground_noise(rays, 0.06)
    tone = 1 + 0.10 * fine[..., 3] + 0.09 * fine[..., 2] + 0.10 * wide[..., 1]
    return tint(color(0.50, 0.34, 0.18), tone)


def _draw(rays: Rays, light: Light) -> Backdrop:
    backdrop = draw_ground(rays, light, rays.to_ring(_RING), _tent_and_lamps, _sawdust)
    lamp = np.exp(-(backdrop.points[..., 0] ** 2 + (backdrop.points[..., 1] - 0.3) ** 2) / 9)
    spot, on_ground = 0.55 + 0.6 * lamp, backdrop.direct.any(-1)
    backdrop.ambient = paint(backdrop.ambient, on_ground, tint(backdrop.ambient, spot))
    backdrop.direct = tint(backdrop.direct, spot)
    return backdrop


BACKGROUND = Background(Light((1.15, 0.98, 0.80), (0.36, 0.30, 0.28), (0.28, 0.18, 0.11)), _draw)
