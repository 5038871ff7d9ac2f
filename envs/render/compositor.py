"""Puts scenes together from the pooled arrays of atlas entries, in one numba kernel.

numba's disk cache does not notice edits of `visibility_at` in envs/drawing/shadows.py: remove
`__pycache__` after changing it.
"""

import numpy as np
from numba import njit

from menagerie.envs.drawing.shadows import BIAS, SOFTNESS, visibility_at
from menagerie.envs.scene import MOST_THINGS

# Columns of the table of entries: where an entry's pixels, layers and depth map lie in the pool.
TOP, LEFT, HEIGHT, WIDTH, PIXELS, COLORS, MAP_ROW, MAP_COLUMN, MAP_HEIGHT, MAP_WIDTH, MAP = range(11)
ENTRY_COLUMNS = 11

# Rows of the scratch table of one scene hold an entry's columns and then its shadow's place.
SHADOW_TOP, SHADOW_LEFT, SHADOW_HEIGHT, SHADOW_WIDTH, SHADOW = range(ENTRY_COLUMNS, ENTRY_COLUMNS + 5)
SCENE_COLUMNS = ENTRY_COLUMNS + 5

BYTE = 1 / 255
MARGIN = 0.5 * SOFTNESS  # texels outside its map to which a thing's shadow reaches


@njit(cache=True, nogil=True)
def compose(scenes, entries, shadow_boxes, light_boxes, pool, backdrops, images, masks):  # pragma: no cover
    """Render scenes into `images` (n, h, w, 3) and `masks` (n, h, w).

    scenes: (n, 2 + 2 k) background and backdrop, then entry and texture of each thing, -1 where there is none
    entries: (e, 11), columns TOP to MAP. shadow_boxes: (e, backgrounds, 5) row, column, height, width, offset
    light_boxes: (e, 6) first and last column, first and last row and greatest depth at which the
        thing receives light, and the least depth in its own map
    pool: alpha, depth, light, colors, shadow, map_depth, each the entries' arrays end to end
    backdrops: (b, 2, h, w, 3) a background in one view, lit and unlit
    """
    flat_images = images.reshape(images.shape[0], -1)
    flat_backdrops = backdrops.reshape(backdrops.shape[0], -1)  # the lit picture, then the unlit one
    table = np.empty((MOST_THINGS, SCENE_COLUMNS), np.int64)
    casts = np.empty((MOST_THINGS, MOST_THINGS), np.bool_)
    met, near = np.empty(MOST_THINGS, np.int64), np.empty((MOST_THINGS, MOST_THINGS), np.int64)
    order, pixels = np.empty(MOST_THINGS, np.int64), np.empty(MOST_THINGS, np.int64)
    least = np.empty(MOST_THINGS, np.float32)
    # Unpacked here only: unpacking for each pixel would count references to each array.
    alpha, depth, light, colors, shadow, map_depth = pool
    for n in range(scenes.shape[0]):
        backdrop = scenes[n, 1]
        for j in range(flat_images.shape[1]):  # one by one: numba's slice copy is several times slower
            flat_images[n, j] = flat_backdrops[backdrop, j]
        things = _gather(scenes, n, entries, shadow_boxes, table)
        _lay_shadows(n, backdrop, things, table, met, near, shadow, backdrops, images)
        _find_meetings(things, table, TOP, met, near)
        _find_casters(scenes, n, things, table, light_boxes, casts, least)
        _lay_things(
            n,
            things,
            table,
            met,
            near,
            casts,
            least,
            alpha,
            depth,
            light,
            colors,
            map_depth,
            order,
            pixels,
            images,
            masks,
        )


@njit(cache=True, nogil=True)
def _gather(scenes, n, entries, shadow_boxes, table):  # pragma: no cover
    """Fill `table` for scene n; returns the number of things in it.

    The scalars are in a small table, because an array view for each pixel costs far more than the pixel.
    """
    background, things, backgrounds = scenes[n, 0], 0, shadow_boxes.shape[1]
    for k in range((scenes.shape[1] - 2) // 2):
        entry, texture = scenes[n, 2 + 2 * k], scenes[n, 3 + 2 * k]
        if entry < 0:
            break
        for c in range(ENTRY_COLUMNS):
            table[k, c] = entries[entry, c]
        for c in range(5):
            table[k, SHADOW_TOP + c] = shadow_boxes[entry, background, c]
        table[k, COLORS] += (texture * backgrounds + background) * table[k, HEIGHT] * table[k, WIDTH]
        things += 1
    return things


@njit(cache=True, nogil=True)
def _overlap(i, j, box, table):  # pragma: no cover
    """Whether the boxes of two things overlap: columns `box` to `box` + 3 of `table` are row, column, height and
    width."""
    above = table[i, box] < table[j, box] + table[j, box + 2] and table[j, box] < table[i, box] + table[i, box + 2]
    left, right = table[i, box + 1] + table[i, box + 3], table[j, box + 1] + table[j, box + 3]
    return above and table[i, box + 1] < right and table[j, box + 1] < left


@njit(cache=True, nogil=True)
def _find_meetings(things, table, box, met, near):  # pragma: no cover
    """Set near[i, : met[i]] to the things whose boxes (see `_overlap`) overlap that of thing i; i itself is among
    them."""
    for i in range(things):
        met[i] = 0
        for j in range(things):
            if i == j or _overlap(i, j, box, table):
                near[i, met[i]] = j
                met[i] += 1


@njit(cache=True, nogil=True)
def _find_casters(scenes, n, things, table, light_boxes, casts, least):  # pragma: no cover
    """Set casts[i, j] if the shadow of thing j may reach thing i, judged by their boxes in light space.

    casts[i, i] is set if the shadow of any other thing may reach thing i. least[i] is the least depth in the map of
    thing i.
    """
    for i in range(things):
        casts[i, i] = False
        least[i] = light_boxes[scenes[n, 2 + 2 * i], 5]
        r = light_boxes[scenes[n, 2 + 2 * i]]
        for j in range(things):
            left, top = table[j, MAP_COLUMN] - SOFTNESS, table[j, MAP_ROW] - SOFTNESS
            right = table[j, MAP_COLUMN] + table[j, MAP_WIDTH] + SOFTNESS
            bottom = table[j, MAP_ROW] + table[j, MAP_HEIGHT] + SOFTNESS
            meet = r[1] >= left and r[0] <= right and r[3] >= top and r[2] <= bottom
            if i != j:
                casts[i, j] = meet and light_boxes[scenes[n, 2 + 2 * j], 5] < r[4]
                casts[i, i] |= casts[i, j]


@njit(cache=True, nogil=True)
def _lay_shadows(n, backdrop, things, table, met, near, shadow, backdrops, images):  # pragma: no cover
    """Mix the lit and the unlit background where the shadows of things fall."""
    _find_meetings(things, table, SHADOW_TOP, met, near)
    side = images.shape[2]
    lits, unlits = backdrops[backdrop, 0].reshape(-1), backdrops[backdrop, 1].reshape(-1)
    flat_image = images[n].reshape(-1)
    for k in range(things):
        top, left, width, meets = table[k, SHADOW_TOP], table[k, SHADOW_LEFT], table[k, SHADOW_WIDTH], met[k]
        for y in range(table[k, SHADOW_HEIGHT]):
            row, start = y + top, table[k, SHADOW] + y * width
            for x in range(width):
                if shadow[start + x] == 255:
                    continue
                column, at = x + left, 3 * (row * side + x + left)
                sun = shadow[start + x] * BYTE
                if meets > 1:
                    for neighbour in range(meets):
                        j = near[k, neighbour]
                        if j != k:
                            sun *= _shadow_of(j, row, column, table, shadow) * BYTE
                for c in range(3):
                    lit, unlit = lits[at + c], unlits[at + c]
                    flat_image[at + c] = np.uint8(lit * sun + unlit * (1.0 - sun) + 0.5)


@njit(inline="always")
def _shadow_of(k, row, column, table, shadow):  # pragma: no cover
    """Return the share of sunlight, 0..255, that thing k leaves on the background at a pixel."""
    y, x = row - table[k, SHADOW_TOP], column - table[k, SHADOW_LEFT]
    left = np.int64(255)
    if 0 <= y < table[k, SHADOW_HEIGHT] and 0 <= x < table[k, SHADOW_WIDTH]:
        left = np.int64(shadow[table[k, SHADOW] + y * table[k, SHADOW_WIDTH] + x])
    return left


@njit(cache=True, nogil=True)
def _lay_things(
    n, things, table, met, near, casts, least, alpha, depth, light, colors, map_depth, order, pixels, images, masks
):  # pragma: no cover
    """Blend the things over the background, farthest first at every pixel.

    This is one function, because numba counts references to every array at each call that it doesn't inline.
    """
    side = images.shape[2]
    flat_image, flat_mask = images[n].reshape(-1), masks[n].reshape(-1)
    for k in range(things):
        # In local variables: for all that the compiler knows, a store into an image may change the table.
        top, left, width, first = table[k, TOP], table[k, LEFT], table[k, WIDTH], table[k, PIXELS]
        color, meets, cast = table[k, COLORS], met[k], casts[k, k]
        for y in range(table[k, HEIGHT]):
            row = y + top
            for x in range(width):
                column, pixel = x + left, first + y * width + x
                opacity = alpha[pixel]
                if opacity == 0:
                    continue
                alone = True  # no other thing covers this pixel
                if meets > 1:
                    for neighbour in range(meets):
                        j = near[k, neighbour]
                        v, u = row - table[j, TOP], column - table[j, LEFT]
                        if j != k and 0 <= v < table[j, HEIGHT] and 0 <= u < table[j, WIDTH]:
                            alone &= alpha[table[j, PIXELS] + v * table[j, WIDTH] + u] == 0
                here = row * side + column
                if alone and opacity == 255 and not (cast and _shaded(pixel, k, things, table, casts, least, light)):
                    at = color + pixel - first
                    for c in range(3):
                        flat_image[3 * here + c] = colors[at, c]
                    flat_mask[here] = k + 1
                    continue
                covering, order[0], pixels[k] = 1, k, pixel
                if not alone:
                    covering = _back_to_front(k, row, column, met, near, table, alpha, depth, order, pixels)
                    if _first(order, covering) < k:
                        continue  # drawn already, with the first of the things that cover this pixel
                red, green, blue = (
                    flat_image[3 * here] + 0.0,
                    flat_image[3 * here + 1] + 0.0,
                    flat_image[3 * here + 2] + 0.0,
                )
                for place in range(covering):
                    i = order[place]
                    at, through = table[i, COLORS] + pixels[i] - table[i, PIXELS], 1 - alpha[pixels[i]] / 255.0
                    share = 1.0
                    if casts[i, i]:
                        share = _sunlight(pixels[i], i, things, table, casts, least, light, map_depth)
                    red = _over(colors, at, 0, share, red, through)
                    green = _over(colors, at, 1, share, green, through)
                    blue = _over(colors, at, 2, share, blue, through)
                flat_image[3 * here] = np.uint8(min(red, 255.0) + 0.5)
                flat_image[3 * here + 1] = np.uint8(min(green, 255.0) + 0.5)
                flat_image[3 * here + 2] = np.uint8(min(blue, 255.0) + 0.5)
                flat_mask[here] = _winner(order, covering, pixels, alpha)


@njit(inline="always")
def _first(order, covering):  # pragma: no cover
    """Return the lowest number among the things that cover a pixel."""
    first = order[0]
    for place in range(1, covering):
        first = min(first, order[place])
    return first


@njit(inline="always")
def _over(colors, at, channel, share, below, through):  # pragma: no cover
    """Mix a premultiplied colour's lit and unlit part by its share of the sun, and lay the result over the colour
    below."""
    return colors[at, channel] * share + colors[at, channel + 3] * (1.0 - share) + below * through


@njit(inline="always")
def _may_shade(j, pixel, table, least, light):  # pragma: no cover
    """Whether thing j may shade a pixel: the pixel lies within the box of j's map, and some of that map lies nearer to
    the sun."""
    column, row = light[pixel, 0] - table[j, MAP_COLUMN] + MARGIN, light[pixel, 1] - table[j, MAP_ROW] + MARGIN
    inside = 0 <= column < table[j, MAP_WIDTH] + SOFTNESS and 0 <= row < table[j, MAP_HEIGHT] + SOFTNESS
    return inside and least[j] <= light[pixel, 2] - BIAS


@njit(inline="always")
def _shaded(pixel, thing, things, table, casts, least, light):  # pragma: no cover
    """Whether another thing may shade a thing's pixel."""
    found = False
    for j in range(things):
        if j != thing and casts[thing, j]:
            found |= _may_shade(j, pixel, table, least, light)
    return found


@njit(inline="always")
def _sunlight(pixel, thing, things, table, casts, least, light, map_depth):  # pragma: no cover
    """Return the share of the sun that the other things leave on a thing's pixel."""
    share = 1.0
    for j in range(things):
        if j != thing and casts[thing, j] and _may_shade(j, pixel, table, least, light):
            column, row = light[pixel, 0] - table[j, MAP_COLUMN], light[pixel, 1] - table[j, MAP_ROW]
            height, width, limit = table[j, MAP_HEIGHT], table[j, MAP_WIDTH], light[pixel, 2] - BIAS
            share *= visibility_at(map_depth, table[j, MAP], height, width, column, row, limit)
    return share


@njit(inline="always")
def _back_to_front(thing, row, column, met, near, table, alpha, depth, order, pixels):  # pragma: no cover
    """Fill `order` with the things that cover a pixel of a thing, farthest first; returns their number.

    Sets pixels[k] to the index in the pool of thing k's pixel.
    """
    covering = 0
    for neighbour in range(met[thing]):
        k = near[thing, neighbour]
        y, x = row - table[k, TOP], column - table[k, LEFT]
        if not (0 <= y < table[k, HEIGHT] and 0 <= x < table[k, WIDTH]):
            continue
        pixel = table[k, PIXELS] + y * table[k, WIDTH] + x
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


@njit(inline="always")
def _winner(order, covering, pixels, alpha):  # pragma: no cover
    """Return the mask's value for a pixel: 0 if the background shows most in it, else the number of the thing that does
    plus 1. A thing wins a tie with the background."""
    rest, most, winner = 1.0, 0.0, 0
    for place in range(covering - 1, -1, -1):
        share = rest * alpha[pixels[order[place]]] / 255.0
        rest -= share
        if share > most:
            most, winner = share, order[place] + 1
    return winner if most >= rest else 0
