"""Rasteriser: turns triangles into samples with depth, normals and body coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float32, Int
from numba import njit

from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.placement import Pose
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.shapes.vectors import normalize, transform

EMPTY = np.float32(1e9)  # depth where there is nothing


@dataclass(frozen=True, eq=False)
class Samples:
    """The visible surface of one object: a row for each sample that it may cover, with the share that it covers."""

    rows: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " n"]
    depth: Float32[np.ndarray, " n"]  # metres along the view axis
    body: Float32[np.ndarray, "n 3"]  # body coordinates
    world: Float32[np.ndarray, "n 3"]
    normals: Float32[np.ndarray, "n 3"]  # unit, in the world
    to_eye: Float32[np.ndarray, "n 3"]  # unit
    ambient: Float32[np.ndarray, " n"]
    alpha: Float32[np.ndarray, " n"]  # share of the sample that it covers


def to_world(mesh: Mesh, pose: Pose, points: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, "n 3"]:
    """Return world coordinates of body points of a placed mesh."""
    metres = (points - mesh.origin) * np.float32(mesh.scale * pose.scale)
    return (transform(pose.rotation, metres) + np.asarray(pose.position, np.float32)).astype(np.float32)


@lru_cache(maxsize=2)
def placed_vertices(mesh: Mesh, pose: Pose) -> Float32[np.ndarray, "n 3"]:
    """Return world coordinates of the vertices of a placed mesh: for the camera, and then for the sun."""
    return to_world(mesh, pose, mesh.vertices)


def trace(objects: Sequence[tuple[Mesh, Pose]], camera: Camera) -> list[Samples]:
    """Rasterise objects into one shared depth buffer; returns the visible samples of each."""
    shape = (camera.size, camera.size)
    depth = np.full(shape, EMPTY, np.float32)
    owner, face = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
    weights = np.zeros((*shape, 2), np.float32)
    for index, (mesh, pose) in enumerate(objects):
        screen = camera.project(placed_vertices(mesh, pose))
        rasterize(screen, mesh.faces, depth, index, owner, face, weights)
    return [
        _samples(mesh, pose, owner == index, camera.eye, depth, face, weights)
        for index, (mesh, pose) in enumerate(objects)
    ]


def _samples(
    mesh: Mesh,
    pose: Pose,
    seen: Bool[np.ndarray, "h w"],
    eye: Float32[np.ndarray, "3"],
    depth: np.ndarray,
    face: np.ndarray,
    weights: np.ndarray,
) -> Samples:
    rows, columns = at = np.nonzero(seen)
    faces, shares = mesh.faces[face[at]], weights[at]
    body = interpolate(mesh.vertices, faces, shares)
    world = to_world(mesh, pose, body)
    normals = normalize(transform(pose.rotation, interpolate(mesh.normals, faces, shares)))
    to_eye, alpha = normalize(eye - world), np.ones(len(rows), np.float32)
    ambient = interpolate(mesh.ambient[:, None], faces, shares)[:, 0]
    return Samples(rows, columns, depth[at], body, world, normals, to_eye, ambient, alpha)


@njit(cache=True, nogil=True)
def interpolate(values, faces, shares):  # pragma: no cover
    """Return the weighted sums (n, c) of the values (v, c) at the corners of each face (n, 3); `shares` (n, 2) weight
    the second and the third."""
    out = np.empty((len(faces), values.shape[1]), np.float32)
    for i in range(faces.shape[0]):
        second, third = shares[i, 0], shares[i, 1]
        first = np.float32(1) - second - third
        for c in range(values.shape[1]):
            a, b = values[faces[i, 0], c] * first, values[faces[i, 1], c] * second
            out[i, c] = a + b + values[faces[i, 2], c] * third
    return out


@njit(cache=True, nogil=True)
def _span(a, b, c, size):  # pragma: no cover
    """Return the first and the last sample whose middle lies between the least and the greatest of three
    coordinates."""
    return max(int(np.ceil(min(a, b, c) - 0.5)), 0), min(int(np.floor(max(a, b, c) - 0.5)), size - 1)


@njit(cache=True, nogil=True)
def rasterize(screen, faces, depth, index=0, owner=None, face=None, weights=None):  # pragma: no cover
    """Draw front faces (screen: column, row, depth) where they are nearest.

    Writes the depth, the object's index, the face and the perspective-correct weights of the face's second and third
    corner. Without `owner`, only the depth of all faces under parallel projection: a shadow map.
    """
    height, width = depth.shape
    for t in range(faces.shape[0]):
        a, b, c = faces[t, 0], faces[t, 1], faces[t, 2]
        x0, y0, x1, y1, x2, y2 = screen[a, 0], screen[a, 1], screen[b, 0], screen[b, 1], screen[c, 0], screen[c, 1]
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        # Rows grow downward, so that faces turned away come out positive.
        if area == 0 or (owner is not None and area > 0):
            continue
        left, right = _span(x0, x1, x2, width)
        top, bottom = _span(y0, y1, y2, height)
        z0, z1, z2 = screen[a, 2], screen[b, 2], screen[c, 2]
        if owner is not None:
            near0, near1, near2 = 1 / z0, 1 / z1, 1 / z2
        for row in range(top, bottom + 1):
            y = row + 0.5 - y0
            for column in range(left, right + 1):
                x = column + 0.5 - x0
                w1 = (x * (y2 - y0) - (x2 - x0) * y) / area
                w2 = ((x1 - x0) * y - x * (y1 - y0)) / area
                w0 = 1 - w1 - w2
                if w0 < 0 or w1 < 0 or w2 < 0:
                    continue
                if owner is None:
                    depth[row, column] = min(depth[row, column], w0 * z0 + w1 * z1 + w2 * z2)
                    continue
                z = 1 / (w0 * near0 + w1 * near1 + w2 * near2)
                if z < depth[row, column]:
                    depth[row, column] = z
                    owner[row, column] = index
                    face[row, column] = t
                    weights[row, column, 0] = w1 * near1 * z
                    weights[row, column, 1] = w2 * near2 * z
