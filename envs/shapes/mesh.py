"""Turns a signed distance field into a closed triangle mesh, by marching cubes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32, Integer

from menagerie.envs.shapes.animal import Animal, PointFunction
from menagerie.envs.shapes.sdf import FAR, Part, body_distance, join_part

CELLS = 112  # grid cells along the longest side


@dataclass(frozen=True, eq=False)
class Mesh:
    """A closed mesh in body units, wound outward.

    Body point p stands at `scale * (p - origin)` metres when the animal is placed at the
    world's origin, facing right.
    """

    vertices: Float32[np.ndarray, "v 3"]
    faces: Int32[np.ndarray, "f 3"]
    normals: Float32[np.ndarray, "v 3"]
    ambient: Float32[np.ndarray, " v"]  # share of the sky's light that reaches the vertex, 0..1
    scale: float
    origin: Float32[np.ndarray, "3"]
    cell: float  # size of a grid cell, body units


def is_closed(faces: Integer[np.ndarray, "f 3"]) -> bool:
    """Whether faces enclose a volume: along each edge as many of them go one way as the other. Four or more may meet,
    where bodies touch along an edge."""
    first, second = (its.ravel().astype(np.int64) for its in (faces, np.roll(faces, -1, axis=1)))
    numbers = np.minimum(first, second) * (faces.max() + 1) + np.maximum(first, second)
    _, edges = np.unique(numbers, return_inverse=True)
    return not np.bincount(edges, np.where(first < second, 1, -1)).any()


@lru_cache(maxsize=64)
def animal_mesh(animal: Any, cells: int = CELLS) -> Mesh:
    """Return the mesh of an `Animal`, its feet at height 0 (plus its hover) once placed; meshes and cut-outs make their
    own."""
    if not isinstance(animal, Animal):
        return animal.mesh()
    vertices, faces, normals, cell = mesh_parts(animal.parts, cells, animal.floor, animal.relief)
    low, high = vertices.min(0), vertices.max(0)
    scale = animal.size / float((high - low).max())
    origin = np.array([(low[0] + high[0]) / 2, 0, low[2] - animal.hover / scale], np.float32)
    ambient = _ambient(animal.parts, vertices, normals, float((high - low).max()))
    return Mesh(vertices, faces, normals, ambient, scale, origin, cell)


def mesh_parts(
    parts: Sequence[Part], cells: int, floor: float | None = None, relief: PointFunction | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return vertices, faces, unit normals and cell size of the body made of `parts`."""
    from skimage.measure import marching_cubes

    axes, cell = _axes(parts, cells)
    field = _half_field(parts, axes, cell)
    if relief is not None:
        _apply_relief(field, axes, cell, relief)
    if floor is not None:
        field = np.maximum(field, (floor - axes[2])[None, None, :])
    field = np.concatenate([field[:, ::-1], field], axis=1)
    vertices, faces, normals, _ = marching_cubes(field, 0.0, gradient_direction="ascent")
    corner = np.array([axes[0][0], -axes[1][-1], axes[2][0]], np.float32)
    vertices = (vertices * cell + corner).astype(np.float32)
    return vertices, *turn_outward(vertices, faces.astype(np.int32), normals.astype(np.float32)), cell


def _axes(parts: Sequence[Part], cells: int) -> tuple[list[np.ndarray], float]:
    """Return grid coordinates along x, y and z (y: the left half only, without the mirror plane)."""
    solid = [part.bounds() for part in parts if not part.carve]
    low, high = np.min([b[0] for b in solid], 0), np.max([b[1] for b in solid], 0)
    cell = float(max(high[0] - low[0], 2 * high[1], high[2] - low[2])) / cells
    x, z = (np.arange(low[i] - 3 * cell, high[i] + 3 * cell, cell, dtype=np.float32) for i in (0, 2))
    y = (np.arange(int(high[1] / cell) + 5, dtype=np.float32) + 0.5) * np.float32(cell)
    return [x, y, z], cell


def _half_field(parts: Sequence[Part], axes: list[np.ndarray], cell: float) -> np.ndarray:
    """Return the signed distances in the left half; each part is evaluated only near itself."""
    field = np.full([len(axis) for axis in axes], FAR, np.float32)
    for part in parts:
        low, high = part.bounds()
        reach = part.blend + 2.5 * cell + 0.02
        window = tuple(
            slice(*np.searchsorted(axis, (a - reach, b + reach))) for axis, a, b in zip(axes, low, high, strict=True)
        )
        points = np.stack(np.meshgrid(*(axis[s] for axis, s in zip(axes, window, strict=True)), indexing="ij"), -1)
        if points.size:
            field[window] = join_part(field[window], part, part.distance(points))
    return field


def _apply_relief(field: np.ndarray, axes: list[np.ndarray], cell: float, relief: PointFunction) -> None:
    near = np.argwhere(np.abs(field) < 6 * cell)
    points = np.stack([axis[near[:, i]] for i, axis in enumerate(axes)], -1)
    field[tuple(near.T)] -= relief(points)


def turn_outward(vertices: np.ndarray, faces: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the faces, wound so that the volume is positive, and the unit normals, which point outward too."""
    a, b, c = (vertices[faces[:, i]].astype(np.float64) for i in range(3))
    face_normals = np.cross(b - a, c - a)
    if (a * face_normals).sum() < 0:
        faces, face_normals = np.ascontiguousarray(faces[:, ::-1]), -face_normals
    if (face_normals * normals[faces[:, 0]]).sum() < 0:
        normals = -normals
    return faces, normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9).astype(np.float32)


def _ambient(parts: Sequence[Part], vertices: np.ndarray, normals: np.ndarray, longest: float) -> np.ndarray:
    """Return the share of the sky's light at each vertex. It depends on the field at two points along the normal, and
    on the height."""
    blocked = np.zeros(len(vertices), np.float32)
    for step, weight in ((0.03, 0.5), (0.08, 0.5)):
        out = np.float32(step * longest)
        blocked += weight * np.clip(1 - body_distance(parts, vertices + out * normals) / out, 0, 1)
    height = (vertices[:, 2] - vertices[:, 2].min()) / (0.15 * longest)
    return ((1 - 0.75 * blocked) * (0.7 + 0.3 * np.clip(height, 0, 1))).astype(np.float32)
