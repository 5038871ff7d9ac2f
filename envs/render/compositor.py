"""Puts scenes together from the records of an atlas, where they lie, in one numba kernel.

numba's disk cache does not notice edits of `visibility_at` in envs/drawing/shadows.py: remove
`__pycache__` after changing it.
"""

import numpy as np
from numba import njit

from menagerie.envs.drawing.shadows import BIAS, SOFTNESS, visibility_at
from menagerie.envs.scene import MOST_OBJECTS

# Numbers with which an entry's record begins: the boxes of its pixels and of its map, and where its arrays lie, counted
# from the record's start in elements of the array.
TOP, LEFT, HEIGHT, WIDTH, MAP_ROW, MAP_COLUMN, MAP_HEIGHT, MAP_WIDTH = range(8)
DEPTH, LIGHT, MAP, ALPHA, COLORS, AREA = range(8, 14)
ENTRY_COLUMNS = 14

# Then, as float64: first and last column, first and last row and greatest depth at which the object receives light, and
# the least depth in its own map.
LIGHT_BOX = ENTRY_COLUMNS
LEAST = LIGHT_BOX + 5
# Then, for each background, the shadow's row, column, height, width and place.
SHADOWS = LIGHT_BOX + 6

# Rows of the scratch table of one scene hold an entry's columns and then its shadow's, with places in the whole atlas.
SHADOW_TOP, SHADOW_LEFT, SHADOW_HEIGHT, SHADOW_WIDTH, SHADOW = range(ENTRY_COLUMNS, ENTRY_COLUMNS + 5)
SCENE_COLUMNS = ENTRY_COLUMNS + 5

BYTE = 1 / 255
MARGIN = 0.5 * SOFTNESS  # texels outside its map to which an object's shadow reaches


@njit(cache=True, nogil=True)
def compose(scenes, backgrounds, data, floats, numbers, doubles, images, masks):  # pragma: no cover
    """Render scenes into `images` (n, h, w, 3) and `masks` (n, h, w).

    scenes: (n, 2 + 2 k) background and where its backdrop lies, then where the entry lies and the texture of each
        object, -1 where there is none; places count in bytes
    backgrounds: the number of the world's backgrounds
    data, floats, numbers, doubles: the atlas as uint8, float32, int64 and float64. A backdrop is (2, h, w, 3), a
        background in one view, lit and unlit.
    """
    flat_images = images.reshape(images.shape[0], -1)
    table = np.empty((MOST_OBJECTS, SCENE_COLUMNS), np.int64)
    casts = np.empty((MOST_OBJECTS, MOST_OBJECTS), np.bool_)
    met, near = np.empty(MOST_OBJECTS, np.int64), np.empty((MOST_OBJECTS, MOST_OBJECTS), np.int64)
    order, pixels = np.empty(MOST_OBJECTS, np.int64), np.empty(MOST_OBJECTS, np.int64)
    least = np.empty(MOST_OBJECTS, np.float32)
    for n in range(scenes.shape[0]):
        backdrop = data[scenes[n, 1] : scenes[n, 1] + 2 * flat_images.shape[1]]  # the lit picture, then the unlit one
        for j in range(flat_images.shape[1]):  # one by one: numba's slice copy is several times slower
            flat_images[n, j] = backdrop[j]
        objects = _gather(scenes, n, backgrounds, numbers, table)
        _lay_shadows(n, backdrop, objects, table, met, near, data, images)
        _find_meetings(objects, table, TOP, met, near)
        _find_casters(scenes, n, objects, table, doubles, casts, least)
        _lay_objects(n, objects, table, met, near, casts, least, data, floats, order, pixels, images, masks)


@njit(cache=True, nogil=True)
def _gather(scenes, n, backgrounds, numbers, table):  # pragma: no cover
    """Fill `table` for scene n; returns the number of objects in it.

    The scalars are in a small table, because an array view for each pixel costs far more than the pixel.
    """
    background, objects = scenes[n, 0], 0
    for k in range((scenes.shape[1] - 2) // 2):
        entry, texture = scenes[n, 2 + 2 * k], scenes[n, 3 + 2 * k]
        if entry < 0:
            break
        for c in range(ENTRY_COLUMNS):
            table[k, c] = numbers[entry // 8 + c]
        for c in range(5):
            table[k, SHADOW_TOP + c] = numbers[entry // 8 + SHADOWS + 5 * background + c]
        for c in (DEPTH, LIGHT, MAP):
            table[k, c] += entry // 4
        for c in (ALPHA, COLORS, SHADOW):
            table[k, c] += entry
        table[k, COLORS] += 6 * (texture * backgrounds + background) * table[k, HEIGHT] * table[k, WIDTH]
        objects += 1
    return objects


@njit(cache=True, nogil=True)
def _overlap(i, j, box, table):  # pragma: no cover
    """Whether the boxes of two objects overlap: columns `box` to `box` + 3 of `table` are row, column, height and
    width."""
    above = table[i, box] < table[j, box] + table[j, box + 2] and table[j, box] < table[i, box] + table[i, box + 2]
    left, right = table[i, box + 1] + table[i, box + 3], table[j, box + 1] + table[j, box + 3]
    return above and table[i, box + 1] < right and table[j, box + 1] < left


@njit(cache=True, nogil=True)
def _find_meetings(objects, table, box, met, near):  # pragma: no cover
    """Set near[i, : met[i]] to the objects whose boxes (see `_overlap`) overlap that of object i; i itself is among
    them."""
    for i in range(objects):
        met[i] = 0
        for j in range(objects):
            if i == j or _overlap(i, j, box, table):
                near[i, met[i]] = j
                met[i] += 1


@njit(cache=True, nogil=True)
def _find_casters(scenes, n, objects, table, doubles, casts, least):  # pragma: no cover
    """Set casts[i, j] if the shadow of object j may reach object i, judged by their boxes in light space.

    casts[i, i] is set if the shadow of any other object may reach object i. least[i] is the least depth in the map of
    object i.
    """
    for i in range(objects):
        casts[i, i] = False
        r = scenes[n, 2 + 2 * i] // 8 + LIGHT_BOX
        least[i] = doubles[r + 5]
        for j in range(objects):
            left, top = table[j, MAP_COLUMN] - SOFTNESS, table[j, MAP_ROW] - SOFTNESS
            right = table[j, MAP_COLUMN] + table[j, MAP_WIDTH] + SOFTNESS
            bottom = table[j, MAP_ROW] + table[j, MAP_HEIGHT] + SOFTNESS
            meet = doubles[r + 1] >= left and doubles[r] <= right
            meet = meet and doubles[r + 3] >= top and doubles[r + 2] <= bottom
            if i != j:
                casts[i, j] = meet and doubles[scenes[n, 2 + 2 * j] // 8 + LEAST] < doubles[r + 4]
                casts[i, i] |= casts[i, j]


@njit(cache=True, nogil=True)
def _lay_shadows(n, backdrop, objects, table, met, near, data, images):  # pragma: no cover
    """Mix the lit and the unlit background where the shadows of objects fall."""
    _find_meetings(objects, table, SHADOW_TOP, met, near)
    side, flat_image = images.shape[2], images[n].reshape(-1)
    lits, unlits = backdrop[: len(flat_image)], backdrop[len(flat_image) :]
    for k in range(objects):
        top, left, width, meets = table[k, SHADOW_TOP], table[k, SHADOW_LEFT], table[k, SHADOW_WIDTH], met[k]
        for y in range(table[k, SHADOW_HEIGHT]):
            row, start = y + top, table[k, SHADOW] + y * width
            for x in range(width):
                if data[start + x] == 255:
                    continue
                column, at = x + left, 3 * (row * side + x + left)
                sun = data[start + x] * BYTE
                if meets > 1:
                    for neighbour in range(meets):
                        j = near[k, neighbour]
                        if j != k:
                            sun *= _shadow_of(j, row, column, table, data) * BYTE
                for c in range(3):
                    lit, unlit = lits[at + c], unlits[at + c]
                    flat_image[at + c] = np.uint8(lit * sun + unlit * (1.0 - sun) + 0.5)


@njit(inline="always")
def _shadow_of(k, row, column, table, data):  # pragma: no cover
    """Return the share of sunlight, 0..255, that object k leaves on the background at a pixel."""
    y, x = row - table[k, SHADOW_TOP], column - table[k, SHADOW_LEFT]
    left = np.int64(255)
    if 0 <= y < table[k, SHADOW_HEIGHT] and 0 <= x < table[k, SHADOW_WIDTH]:
        left = np.int64(data[table[k, SHADOW] + y * table[k, SHADOW_WIDTH] + x])
    return left


@njit(cache=True, nogil=True)
def _lay_objects(
    n, objects, table, met, near, casts, least, data, floats, order, pixels, images, masks
):  # pragma: no cover
    """Blend the objects over the background, farthest first at every pixel.

    This is one function, because numba counts references to every array at each call that it doesn't inline.
    """
    side = images.shape[2]
    flat_image, flat_mask = images[n].reshape(-1), masks[n].reshape(-1)
    for k in range(objects):
        # In local variables: for all that the compiler knows, a store into an image may change the table.
        top, left, width, alpha = table[k, TOP], table[k, LEFT], table[k, WIDTH], table[k, ALPHA]
        color, meets, cast = table[k, COLORS], met[k], casts[k, k]
        for y in range(table[k, HEIGHT]):
            row = y + top
            for x in range(width):
                column, pixel = x + left, y * width + x
                opacity = data[alpha + pixel]
                if opacity == 0:
                    continue
                alone = True  # no other object covers this pixel
                if meets > 1:
                    for neighbour in range(meets):
                        j = near[k, neighbour]
                        v, u = row - table[j, TOP], column - table[j, LEFT]
                        if j != k and 0 <= v < table[j, HEIGHT] and 0 <= u < table[j, WIDTH]:
                            alone &= data[table[j, ALPHA] + v * table[j, WIDTH] + u] == 0
                here = row * side + column
                if alone and opacity == 255 and not (cast and _shaded(pixel, k, objects, table, casts, least, floats)):
                    at = color + 6 * pixel
                    for c in range(3):
                        flat_image[3 * here + c] = data[at + c]
                    flat_mask[here] = k + 1
                    continue
                covering, order[0], pixels[k] = 1, k, pixel
                if not alone:
                    covering = _back_to_front(k, row, column, met, near, table, data, floats, order, pixels)
                    if _first(order, covering) < k:
                        continue  # drawn already, with the first of the objects that cover this pixel
                red, green, blue = (
                    flat_image[3 * here] + 0.0,
                    flat_image[3 * here + 1] + 0.0,
                    flat_image[3 * here + 2] + 0.0,
                )
                for place in range(covering):
                    i = order[place]
                    at, through = table[i, COLORS] + 6 * pixels[i], 1 - data[table[i, ALPHA] + pixels[i]] / 255.0
                    share = 1.0
                    if casts[i, i]:
                        share = _sunlight(pixels[i], i, objects, table, casts, least, floats)
                    red = _lay_over(data, at + 0, share, red, through)
                    green = _lay_over(data, at + 1, share, green, through)
                    blue = _lay_over(data, at + 2, share, blue, through)
                flat_image[3 * here] = np.uint8(min(red, 255.0) + 0.5)
                flat_image[3 * here + 1] = np.uint8(min(green, 255.0) + 0.5)
                flat_image[3 * here + 2] = np.uint8(min(blue, 255.0) + 0.5)
                flat_mask[here] = _winner(order, covering, pixels, table, data)


@njit(inline="always")
def _first(order, covering):  # pragma: no cover
    """Return the lowest number among the objects that cover a pixel."""
    first = order[0]
    for place in range(1, covering):
        first = min(first, order[place])
    return first


@njit(inline="always")
def _lay_over(data, at, share, below, through):  # pragma: no cover
    """Mix a premultiplied colour's lit and unlit part by its share of the sun, and lay the result over the colour
    below."""
    return data[at] * share + data[at + 3] * (1.0 - share) + below * through


@njit(inline="always")
def _may_shade(j, at, table, least, floats):  # pragma: no cover
    """Whether object j may shade the pixel whose point in light space lies at `at`: the point lies within the box of
    j's map, and some of that map lies nearer to the sun."""
    column, row = floats[at] - table[j, MAP_COLUMN] + MARGIN, floats[at + 1] - table[j, MAP_ROW] + MARGIN
    inside = 0 <= column < table[j, MAP_WIDTH] + SOFTNESS and 0 <= row < table[j, MAP_HEIGHT] + SOFTNESS
    return inside and least[j] <= floats[at + 2] - BIAS


@njit(inline="always")
def _shaded(pixel, obj, objects, table, casts, least, floats):  # pragma: no cover
    """Whether another object may shade an object's pixel."""
    found = False
    for j in range(objects):
        if j != obj and casts[obj, j]:
            found |= _may_shade(j, table[obj, LIGHT] + 3 * pixel, table, least, floats)
    return found


@njit(inline="always")
def _sunlight(pixel, obj, objects, table, casts, least, floats):  # pragma: no cover
    """Return the share of the sun that the other objects leave on an object's pixel."""
    share, at = 1.0, table[obj, LIGHT] + 3 * pixel
    for j in range(objects):
        if j != obj and casts[obj, j] and _may_shade(j, at, table, least, floats):
            column, row = floats[at] - table[j, MAP_COLUMN], floats[at + 1] - table[j, MAP_ROW]
            height, width, limit = table[j, MAP_HEIGHT], table[j, MAP_WIDTH], floats[at + 2] - BIAS
            share *= visibility_at(floats, table[j, MAP], height, width, column, row, limit)
    return share


@njit(inline="always")
def _back_to_front(obj, row, column, met, near, table, data, floats, order, pixels):  # pragma: no cover
    """Fill `order` with the objects that cover a pixel of an object, farthest first; returns their number.

    Sets pixels[k] to the number of object k's pixel, counted row by row in its box.
    """
    covering = 0
    for neighbour in range(met[obj]):
        k = near[obj, neighbour]
        y, x = row - table[k, TOP], column - table[k, LEFT]
        if not (0 <= y < table[k, HEIGHT] and 0 <= x < table[k, WIDTH]):
            continue
        pixels[k] = y * table[k, WIDTH] + x
        if data[table[k, ALPHA] + pixels[k]] == 0:
            continue
        place = covering
        while place > 0 and _depth(order[place - 1], pixels, table, floats) < _depth(k, pixels, table, floats):
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        covering += 1
    return covering


@njit(inline="always")
def _depth(k, pixels, table, floats):  # pragma: no cover
    """Return the distance of object k's pixel."""
    return floats[table[k, DEPTH] + pixels[k]]


@njit(inline="always")
def _winner(order, covering, pixels, table, data):  # pragma: no cover
    """Return the mask's value for a pixel: 0 if the background shows most in it, else the number of the object that
    does plus 1. An object wins a tie with the background."""
    rest, most, winner = 1.0, 0.0, 0
    for place in range(covering - 1, -1, -1):
        share = rest * data[table[order[place], ALPHA] + pixels[order[place]]] / 255.0
        rest -= share
        if share > most:
            most, winner = share, order[place] + 1
    return winner if most >= rest else 0
