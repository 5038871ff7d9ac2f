"""Arena: a wooden court with white lines, a barrier, stands full of people, lamps."""

import numpy as np

from menagerie.envs.drawing.background import (
    Backdrop,
    Background,
    Rays,
    draw_ground,
    fraction,
    ground_noise,
    paint,
    random_at,
    tint,
)
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.texture import color
from menagerie.envs.shapes.vectors import store_in_planes

_RADIUS = 8.0  # metres, of the stands
_SEAT, _ROW = 0.24, 0.30  # metres
_BARRIER = 0.9  # metres high


def _stands(along: np.ndarray, height: np.ndarray) -> np.ndarray:
    row = np.floor((height - _BARRIER) / _ROW)
    place = along / _SEAT + 0.5 * (row % 2)
    seat, across, up = np.floor(place), fraction(place) - 0.5, fraction((height - _BARRIER) / _ROW) - 0.5
    person = (across / 0.36) ** 2 + ((up + 0.1) / 0.42) ** 2 < 1
    clothes = store_in_planes([0.10 + 0.45 * random_at(seat, row, np.full_like(row, k)) for k in range(3)]) * 0.5
    crowd = paint(clothes, ~person, color(0.035, 0.04, 0.06))
    return tint(crowd, 1.1 - 0.07 * np.clip(height, 0, 9))


def _stands_and_barrier(rays: Rays) -> np.ndarray:
    point = rays.at(rays.to_ring(_RADIUS))
    height, along = point[..., 2], np.arctan2(point[..., 0], point[..., 1] - 1) * _RADIUS
    picture = _stands(along, height)
    low, blue = height < _BARRIER, fraction(along / 2.2) < 0.5
    picture = paint(picture, low & blue, color(0.05, 0.10, 0.35))
    picture = paint(picture, low & ~blue, color(0.42, 0.05, 0.05))
    picture = paint(picture, low & (np.abs(height - _BARRIER + 0.12) < 0.08), color(0.75, 0.75, 0.72))
    glow = np.exp(-((fraction(along / 2.4) - 0.5) ** 2 * 60 + (height - 3.55) ** 2 * 30))
    return paint(picture, height > 3.1, color(0.02, 0.022, 0.03) + tint(color(1, 0.97, 0.88), 2 * glow))


def _court(rays: Rays) -> np.ndarray:
    ground, fine = rays.at(rays.to_ground()), ground_noise(rays, 0.5)
    x, y = ground[..., 0], ground[..., 1]
    plank = np.floor(x / 0.28)
    tone = random_at(plank, np.floor(y / 1.8 + plank * 0.37))
    wood = tint(color(0.50, 0.29, 0.13), 0.85 + 0.22 * tone + 0.03 * fine[..., 2])
    circle = np.abs(np.hypot(x, y - 0.5) - 2.6) < 0.05
    lines = circle | (np.abs(y - 1.9) < 0.05) | (np.abs(np.abs(x) - 5) < 0.05)
    return paint(wood, lines, color(0.8, 0.8, 0.78))


def _draw(rays: Rays, light: Light) -> Backdrop:
    return draw_ground(rays, light, rays.to_ring(_RADIUS), _stands_and_barrier, _court)


BACKGROUND = Background(Light((1.05, 1.02, 0.98), (0.38, 0.38, 0.40), (0.22, 0.17, 0.12)), _draw)
