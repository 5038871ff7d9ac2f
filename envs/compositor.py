"""Puts scenes together from the pooled arrays of atlas entries, in one numba kernel.

numba's disk cache does not notice edits of `visibility_at` in envs/shadows.py: remove
`__pycache__` after changing it.
"""

import numpy as np
from numba import njit

from envs.shadows import BIAS, SOFTNESS, visibility_at

# Columns of the table of entries: where an entry's pixels, layers and depth map lie in the pool.
TOP, LEFT, HEIGHT, WIDTH, PIXELS, COLORS, MAP_ROW, MAP_COLUMN, MAP_HEIGHT, MAP_WIDTH, MAP = range(11)
ENTRY_COLUMNS = 11
MOST_THINGS = 8  # in one scene


@njit(cache=True, nogil=True)
def compose(scenes, entries, shadow_boxes, light_boxes, pool, backdrops, images, masks):  # pragma: no cover
    """Render scenes into `images` (n, h, w, 3) and `masks` (n, h, w).

    scenes: (n, 1 + 2 k) background, then entry and texture of each thing, -1 where there are fewer
    entries: (e, 11), see above. shadow_boxes: (e, backgrounds, 5) row, column, height, width, offset
    light_boxes: (e, 6) first and last column, first and last row and greatest depth at which the
        thing receives light, and the least depth in its own map
    pool: alpha, depth, light, colors, shadow, map_depth, each the entries' arrays end to end
    backdrops: lit and unlit backgrounds (2, backgrounds, h, w, 3)
    """
    side = images.shape[1]
    flat_images, flat_lit = images.reshape(images.shape[0], -1), backdrops[0].reshape(backdrops.shape[1], -1)
    chosen, textures = np.empty(MOST_THINGS, np.int64), np.empty(MOST_THINGS, np.int64)
    work = (np.empty(MOST_THINGS, np.int64), np.empty(MOST_THINGS, np.int64))
    casts = np.empty((MOST_THINGS, MOST_THINGS), np.bool_)
    for n in range(scenes.shape[0]):
        background, things = scenes[n, 0], 0
        for k in range((scenes.shape[1] - 1) // 2):
            if scenes[n, 1 + 2 * k] >= 0:
                chosen[things], textures[things] = scenes[n, 1 + 2 * k], scenes[n, 2 + 2 * k]
                things += 1
        source, target = flat_lit[background], flat_images[n]
        for j in range(target.shape[0]):  # element by element: numba's slice copy is several times slower
            target[j] = source[j]
        box = _touched(chosen, things, background, entries, shadow_boxes, side)
        _find_casters(chosen, things, entries, light_boxes, casts)
        for row in range(box[0], box[1]):
            for column in range(box[2], box[3]):
                masks[n, row, column] = _pixel(
                    row, column, chosen, textures, things, background, casts, entries, shadow_boxes, pool,
                    backdrops, work, images[n, row, column],
                )  # fmt: skip


@njit(cache=True, nogil=True)
def _touched(chosen, things, background, entries, shadow_boxes, side):  # pragma: no cover
    """First and last row and column (exclusive) that any thing or shadow touches."""
    top, bottom, left, right = side, 0, side, 0
    for k in range(things):
        e = entries[chosen[k]]
        s = shadow_boxes[chosen[k], background]
        top, bottom = min(top, e[TOP]), max(bottom, e[TOP] + e[HEIGHT])
        left, right = min(left, e[LEFT]), max(right, e[LEFT] + e[WIDTH])
        if s[2] > 0:
            top, bottom = min(top, s[0]), max(bottom, s[0] + s[2])
            left, right = min(left, s[1]), max(right, s[1] + s[3])
    return top, bottom, left, right


@njit(cache=True, nogil=True)
def _find_casters(chosen, things, entries, light_boxes, casts):  # pragma: no cover
    """casts[i, j]: the shadow of thing j may reach thing i, by their boxes in light space."""
    for i in range(things):
        r = light_boxes[chosen[i]]
        for j in range(things):
            e = entries[chosen[j]]
            left, top = e[MAP_COLUMN] - SOFTNESS, e[MAP_ROW] - SOFTNESS
            right, bottom = e[MAP_COLUMN] + e[MAP_WIDTH] + SOFTNESS, e[MAP_ROW] + e[MAP_HEIGHT] + SOFTNESS
            casts[i, j] = i != j and r[1] >= left and r[0] <= right and r[3] >= top and r[2] <= bottom
            casts[i, j] = casts[i, j] and light_boxes[chosen[j], 5] < r[4]


@njit(cache=True, nogil=True)
def _sunlight(pixel, thing, chosen, things, casts, entries, light, map_depth):  # pragma: no cover
    """Share of the sun that the other things leave on a thing's pixel."""
    share = 1.0
    for j in range(things):
        if casts[thing, j]:
            e = entries[chosen[j]]
            share *= visibility_at(
                map_depth, e[MAP], e[MAP_HEIGHT], e[MAP_WIDTH],
                light[pixel, 0] - e[MAP_COLUMN], light[pixel, 1] - e[MAP_ROW], light[pixel, 2] - BIAS,
            )  # fmt: skip
    return share


@njit(cache=True, nogil=True)
def _sunlit_ground(row, column, chosen, things, background, shadow_boxes, shadow):  # pragma: no cover
    """Share of the sun that all things leave on the background at a pixel."""
    share = 1.0
    for k in range(things):
        box = shadow_boxes[chosen[k], background]
        y, x = row - box[0], column - box[1]
        if 0 <= y < box[2] and 0 <= x < box[3]:
            share *= shadow[box[4] + y * box[3] + x] / 255.0
    return share


@njit(cache=True, nogil=True)
def _back_to_front(row, column, chosen, things, entries, alpha, depth, order, pixels):  # pragma: no cover
    """Fill `order` with the things that cover a pixel, farthest first; returns how many.

    `pixels` gets, for each thing, where its pixel lies in the pool.
    """
    covering = 0
    for k in range(things):
        e = entries[chosen[k]]
        y, x = row - e[TOP], column - e[LEFT]
        if not (0 <= y < e[HEIGHT] and 0 <= x < e[WIDTH]):
            continue
        pixel = e[PIXELS] + y * e[WIDTH] + x
        if alpha[pixel] == 0:
            continue
        pixels[k] = pixel
        place = covering
        while place > 0 and depth[pixels[order[place - 1]]] < depth[pixel]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        covering += 1
    return covering


@njit(cache=True, nogil=True)
def _winner(order, covering, pixels, alpha):  # pragma: no cover
    """Instance that covers most of a pixel; a thing wins a tie with the background."""
    rest, most, winner = 1.0, 0.0, 0
    for place in range(covering - 1, -1, -1):
        share = rest * alpha[pixels[order[place]]] / 255.0
        rest -= share
        if share > most:
            most, winner = share, order[place] + 1
    return winner if most >= rest else 0


@njit(cache=True, nogil=True)
def _pixel(
    row, column, chosen, textures, things, background, casts, entries, shadow_boxes, pool, backdrops, work, color
):  # pragma: no cover
    """Colour one pixel in place; returns its instance, 0 for the background."""
    alpha, depth, light, colors, shadow, map_depth = pool
    order, pixels = work
    covering = _back_to_front(row, column, chosen, things, entries, alpha, depth, order, pixels)
    sun = _sunlit_ground(row, column, chosen, things, background, shadow_boxes, shadow)
    if covering == 0 and sun == 1.0:
        return 0
    lit, unlit = backdrops[0, background, row, column], backdrops[1, background, row, column]
    red, green, blue = (
        unlit[0] + (lit[0] - np.float64(unlit[0])) * sun,
        unlit[1] + (lit[1] - np.float64(unlit[1])) * sun,
        unlit[2] + (lit[2] - np.float64(unlit[2])) * sun,
    )
    backgrounds = backdrops.shape[1]
    for place in range(covering):
        k = order[place]
        e = entries[chosen[k]]
        area = e[HEIGHT] * e[WIDTH]
        at = e[COLORS] + (textures[k] * backgrounds + background) * area + pixels[k] - e[PIXELS]
        share = _sunlight(pixels[k], k, chosen, things, casts, entries, light, map_depth)
        c, through = colors[at], 1 - alpha[pixels[k]] / 255.0
        red = c[3] + (c[0] - np.float64(c[3])) * share + red * through
        green = c[4] + (c[1] - np.float64(c[4])) * share + green * through
        blue = c[5] + (c[2] - np.float64(c[5])) * share + blue * through
    color[0] = np.uint8(min(red, 255.0) + 0.5)
    color[1] = np.uint8(min(green, 255.0) + 0.5)
    color[2] = np.uint8(min(blue, 255.0) + 0.5)
    return _winner(order, covering, pixels, alpha)
