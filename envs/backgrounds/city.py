"""City: a street with a dashed line, a pavement of slabs, two rows of lit buildings."""

import numpy as np

from menagerie.envs.drawing.background import (
    Backdrop,
    Background,
    Rays,
    blend,
    draw_ground,
    fraction,
    ground_noise,
    paint,
    random_at,
    smoothstep,
    tint,
)
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.texture import color
from menagerie.envs.shapes.vectors import store_in_planes

_ROWS = (  # depth, width of a house, greatest height (metres), colour of the walls
    (30.0, 3.6, 8.0, (0.42, 0.45, 0.50)),
    (16.0, 2.8, 4.2, (0.40, 0.29, 0.22)),
)


def _houses(rays: Rays, picture: np.ndarray, index: int) -> np.ndarray:
    depth, width, tallest, walls = _ROWS[index]
    point = rays.at(rays.to_wall(depth))
    x, z = point[..., 0] + 1.7 * index, point[..., 2]
    house, across = np.floor(x / width), fraction(x / width)
    random = random_at(house, np.full_like(house, index))
    roof = tallest * (0.45 + 0.55 * random)
    hue = store_in_planes([1 + 0.25 * fraction(random * 3.3), np.ones_like(random), 1 - 0.2 * fraction(random * 5.1)])
    colors = tint(color(*walls), 0.7 + 0.5 * fraction(random * 7.7)) * hue
    colors = paint(colors, across < 0.05, colors * 0.45)
    column, floor = x / 0.62, z / 0.8
    window = (np.abs(fraction(column) - 0.52) < 0.27) & (np.abs(fraction(floor) - 0.52) < 0.27)
    window &= (np.abs(across - 0.5) < 0.44) & (z < roof - 0.4)
    glass = color(0.05, 0.09, 0.14) + tint(color(0.07, 0.09, 0.11), smoothstep(0, 8, z))
    lamps = random_at(np.floor(column), np.floor(floor)) > 0.8
    colors = paint(colors, window, glass)
    colors = paint(colors, window & lamps, color(0.75, 0.62, 0.32))
    return paint(picture, (z < roof) & (z > -0.2), colors)


def _street(rays: Rays) -> np.ndarray:
    distance = rays.to_ground()
    ground, fine, wide = rays.at(distance), ground_noise(rays, 0.5), ground_noise(rays, 0.06)
    x, y = ground[..., 0], ground[..., 1]
    tone = 1 + 0.14 * fine[..., 3] + 0.10 * fine[..., 2] + 0.10 * wide[..., 0]
    albedo = tint(color(0.15, 0.15, 0.155), tone)
    dashes = (np.abs(y - 2.2) < 0.07) & (fraction(x / 2.2) < 0.55)
    albedo = paint(albedo, dashes, color(0.75, 0.70, 0.55))
    joints = ((x % 1.2 < 0.05) | (y % 1.2 < 0.05)) & (distance < 18)
    albedo = paint(albedo, y > 4.0, color(0.36, 0.35, 0.33))
    albedo = paint(albedo, (y > 4.0) & joints, color(0.22, 0.22, 0.21))
    return paint(albedo, np.abs(y - 3.9) < 0.1, color(0.5, 0.5, 0.48))


def _sky_and_houses(rays: Rays) -> np.ndarray:
    scenery = blend(color(0.55, 0.68, 0.82), color(0.17, 0.36, 0.70), smoothstep(0, 0.25, rays.height))
    for index in range(len(_ROWS)):
        scenery = _houses(rays, scenery, index)
    return scenery


def _draw(rays: Rays, light: Light) -> Backdrop:
    return draw_ground(rays, light, rays.to_wall(_ROWS[-1][0]), _sky_and_houses, _street)


BACKGROUND = Background(Light((1.1, 1.05, 0.98), (0.36, 0.42, 0.52), (0.16, 0.16, 0.17)), _draw)
