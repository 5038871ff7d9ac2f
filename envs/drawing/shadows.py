"""Shadows: a depth map seen from the sun, looked up with soft edges.

numba's disk cache of a caller in another file does not notice edits here: remove
`__pycache__` after changing `visibility_at`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8
from numba import njit

from menagerie.envs.drawing.placement import Pose
from menagerie.envs.drawing.raster import EMPTY, placed_vertices, rasterize
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.shapes.vectors import coordinates

CENTER = np.array([0.0, 0.0, 1.1], np.float32)
REACH = 3.0  # metres from the centre to the map's border
TEXELS = 512  # along the map's side
SOFTNESS = 5  # texels across which a shadow's edge fades
BIAS = np.float32(0.03)  # metres: keeps a surface from shadowing itself


@dataclass(frozen=True, eq=False)
class ShadowMap:
    """The part of the sun's depth map that objects occupy: its first row and column, and depths in metres."""

    row: int
    column: int
    depth: Float32[np.ndarray, "h w"]


def light_axes(sun: Float32[np.ndarray, "3"]) -> Float32[np.ndarray, "3 3"]:
    """Return the directions in the world in which the map's column, row and depth grow, one per row."""
    across = np.cross(sun, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(sun, [0.0, 0.0, 1.0]))
    return np.stack([across, np.cross(across, sun), -sun]).astype(np.float32)


def light_space(points: Float32[np.ndarray, "*n 3"], sun: Float32[np.ndarray, "3"]) -> Float32[np.ndarray, "*n 3"]:
    """Return world points as column and row in the map, and depth in metres along the sun's rays."""
    *across, depth = coordinates(light_axes(sun), points - CENTER)
    texels = ((axis / np.float32(REACH) * 0.5 + 0.5) * TEXELS for axis in across)
    return np.stack([*texels, depth], -1).astype(np.float32, copy=False)


def receiving_points(
    world: Float32[np.ndarray, "n 3"], normals: Float32[np.ndarray, "n 3"], sun: Float32[np.ndarray, "3"]
) -> Float32[np.ndarray, "n 3"]:
    """Return light-space points just off the surface, so that curved skin doesn't shadow itself."""
    return light_space(world + BIAS * normals, sun)


def shadow_map(mesh: Mesh, pose: Pose, sun: Float32[np.ndarray, "3"]) -> ShadowMap:
    """Compute the shadow map of a placed mesh."""
    depth = np.full((TEXELS, TEXELS), EMPTY, np.float32)
    rasterize(light_space(placed_vertices(mesh, pose), sun), mesh.faces, depth)
    return crop_map(depth)


def crop_map(depth: Float32[np.ndarray, "h w"], row: int = 0, column: int = 0) -> ShadowMap:
    """Return the part of a depth map that isn't empty; the map's first texel lies at `row` and `column`."""
    rows, columns = (np.flatnonzero((depth < EMPTY).any(axis)) for axis in (1, 0))
    top, left = int(rows[0]), int(columns[0])
    part = np.ascontiguousarray(depth[top : rows[-1] + 1, left : columns[-1] + 1])
    return ShadowMap(row + top, column + left, part)


@njit(cache=True, nogil=True)
def visibility_at(depth, offset, height, width, column, row, limit):  # pragma: no cover
    """Return the share of a box of SOFTNESS texels around (column, row) that the sun reaches.

    `depth` is flat: the map lies at `offset`, with `height` x `width` texels. Texels at the box's edges count by the
    fraction that the box covers, so that the result is continuous.
    """
    x, y = column - 0.5 * SOFTNESS, row - 0.5 * SOFTNESS
    left, top = int(np.floor(x)), int(np.floor(y))
    if left + SOFTNESS < 0 or top + SOFTNESS < 0 or left >= width or top >= height:
        return 1.0
    inner_x, inner_y = 1 - (x - left), 1 - (y - top)
    hidden = 0.0
    for j in range(max(top, 0), min(top + SOFTNESS + 1, height)):
        across = 0.0
        for i in range(max(left, 0), min(left + SOFTNESS + 1, width)):
            if depth[offset + j * width + i] <= limit:
                across += inner_x if i == left else (1 - inner_x if i == left + SOFTNESS else 1.0)
        hidden += across * (inner_y if j == top else (1 - inner_y if j == top + SOFTNESS else 1.0))
    return 1.0 - hidden / (SOFTNESS * SOFTNESS)


@njit(cache=True, nogil=True)
def _visibility(depth, height, width, points, bias, out):  # pragma: no cover
    for i in range(points.shape[0]):
        out[i] = visibility_at(depth, 0, height, width, points[i, 0], points[i, 1], points[i, 2] - bias)


def visibility(shadows: ShadowMap, points: Float32[np.ndarray, "*n 3"]) -> Float32[np.ndarray, "*n"]:
    """Return the share of the sun, 0..1, that reaches light-space points."""
    flat = points.reshape(-1, 3) - np.array([shadows.column, shadows.row, 0], np.float32)
    out = np.empty(len(flat), np.float32)
    _visibility(shadows.depth.reshape(-1), *shadows.depth.shape, flat, BIAS, out)
    return out.reshape(points.shape[:-1])


def reach_of(points: Float32[np.ndarray, "h w 3"], side: int) -> Float32[np.ndarray, "rows columns 4"]:
    """Return the least and greatest column and the least and greatest row, in light space, of the points in each pixel
    of `side` x `side` samples."""
    height, width = points.shape[0] // side, points.shape[1] // side
    ends = []
    for axis in (0, 1):
        rows = points[..., axis].reshape(height, side, width * side)  # first across rows: the loops are long
        ends += [end.reduce(end.reduce(rows, 1).reshape(height, width, side), 2) for end in (np.minimum, np.maximum)]
    return np.stack(ends, -1)


def ground_shadow(
    shadows: ShadowMap,
    points: Float32[np.ndarray, "h w 3"],
    reach: Float32[np.ndarray, "rows columns 4"],
    known: tuple[Float32[np.ndarray, "h w 3"], Float32[np.ndarray, "h w"]],
    contact: Float32[np.ndarray, "h w"] | Float32[np.ndarray, "1 1"],
    bare: Float32[np.ndarray, "h w"],
    uncovered: Float32[np.ndarray, "rows columns"],
) -> UInt8[np.ndarray, "rows columns"]:
    """Return the share of the sun, 0..255, that an object leaves on the ground in each pixel.

    points: the ground in light space, and its `reach_of`. known: points of which many are those of the ground, and the
    share of the sun that reaches each of them, or -1 where this function still has to write it. contact: the share of
    the sun without the shadow map; a single one stands for a one everywhere. bare: the part of each sample that the
    object leaves visible, which is its weight, because only that part shows the ground. uncovered: its mean over each
    pixel.
    """
    out = np.empty(uncovered.shape, np.uint8)
    where = shadows.row, shadows.column, points, reach
    _ground_shadow(shadows.depth, *where, *known, BIAS, contact, bare, uncovered, out)
    return out


@njit(cache=True, nogil=True)
def _ground_shadow(
    depth, top, left, points, reach, same, shares, bias, contact, bare, uncovered, out
):  # pragma: no cover
    """Fill `out`. Sums are those of `average`: along a row of samples first."""
    (height, width), side, flat = depth.shape, bare.shape[0] // out.shape[0], depth.reshape(-1)
    first_row, first_column, count = np.float32(top), np.float32(left), np.float32(side * side)
    right, bottom = left + width + SOFTNESS, top + height + SOFTNESS
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x], least = 255, np.float32(1e-6)
            beyond = reach[y, x, 0] > right or reach[y, x, 1] < left - SOFTNESS
            beyond |= reach[y, x, 2] > bottom or reach[y, x, 3] < top - SOFTNESS
            if uncovered[y, x] == 0 or (beyond and contact.size == 1 and uncovered[y, x] > least):
                continue
            total = np.float32(0)
            for v in range(y * side, (y + 1) * side):
                along = np.float32(0)
                for u in range(x * side, (x + 1) * side):
                    here = contact[v, u] if contact.size > 1 else np.float32(1)
                    if not beyond:
                        x0, y0, z0 = points[v, u, 0], points[v, u, 1], points[v, u, 2]
                        is_same = x0 == same[v, u, 0] and y0 == same[v, u, 1] and z0 == same[v, u, 2]
                        share = shares[v, u] if is_same else np.float32(-1)
                        if share < 0:
                            column, row, limit = x0 - first_column, y0 - first_row, z0 - bias
                            share = np.float32(visibility_at(flat, 0, height, width, column, row, limit))
                            if is_same:
                                shares[v, u] = share
                        here *= share
                    along += here * bare[v, u]
                total += along
            mean = total / count / max(uncovered[y, x], least)
            out[y, x] = np.uint8(mean * np.float32(255) + np.float32(0.5))
