"""The definition of a background: a light, and a picture drawn along the camera's rays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import EllipsisType

import numpy as np
from jaxtyping import Bool, Float32

from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.placement import Pose
from menagerie.envs.drawing.raster import trace
from menagerie.envs.drawing.shading import Light
from menagerie.envs.shapes.mesh import Mesh, mesh_parts
from menagerie.envs.shapes.sdf import Part
from menagerie.envs.shapes.texture import noise, noise_below
from menagerie.envs.shapes.vectors import dot, store_in_planes

FAR = np.float32(1e4)  # metres: where rays that meet nothing end


@dataclass(frozen=True, eq=False)
class Rays:
    """The camera's rays, with methods that tell where they meet simple surfaces."""

    camera: Camera
    rows: slice | EllipsisType = ...  # of the camera's samples

    def only(self, rows: slice) -> "Rays":
        """Return the rays of some of all rows."""
        return Rays(self.camera, rows)

    @property
    def eye(self) -> Float32[np.ndarray, "3"]:
        """The point where all rays start, in metres."""
        return self.camera.eye

    @property
    def sun(self) -> Float32[np.ndarray, "3"]:
        """Unit vector towards the sun."""
        return self.camera.view.sun

    @cached_property
    def directions(self) -> Float32[np.ndarray, "h w 3"]:
        """Unit vectors from the eye through the middle of each sample."""
        return store_in_planes(_directions(self.camera)[:, self.rows].copy())

    @cached_property
    def azimuth(self) -> Float32[np.ndarray, "h w"]:
        """Angle to the right of straight ahead, radians."""
        return np.arctan2(self.directions[..., 0], self.directions[..., 1])

    @property
    def height(self) -> Float32[np.ndarray, "h w"]:
        """Vertical component of each direction: 0 at the horizon."""
        return self.directions[..., 2]

    def at(self, distance: Float32[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w 3"]:
        """Return the point at a distance along each ray."""
        return self.eye + self.directions * distance[..., None]

    def to_ground(self) -> Float32[np.ndarray, "h w"]:
        """Return the distance to the plane z = 0, at most `FAR`; `FAR` above the horizon."""
        down = np.minimum(self.height, np.float32(-1e-4))
        return np.where(self.height < -1e-3, np.minimum(-self.eye[2] / down, FAR), FAR)

    def to_wall(self, y: float) -> Float32[np.ndarray, "h w"]:
        """Return the distance to the upright plane at depth `y`."""
        return ((y - self.eye[1]) / np.maximum(self.directions[..., 1], np.float32(1e-3))).astype(np.float32)

    def to_ring(self, radius: float) -> Float32[np.ndarray, "h w"]:
        """Return the distance along each ray to where it leaves an upright cylinder around the point (0, 1) on the
        ground."""
        start, flat = self.eye[:2] - np.array([0, 1], np.float32), self.directions[..., :2]
        a, b = (flat**2).sum(-1), (flat * start).sum(-1)
        root = np.sqrt(np.maximum(b * b - a * np.float32(start @ start - radius**2), 0))
        return (root - b) / a


@lru_cache(maxsize=1)  # all backgrounds of a view are drawn along the same rays
def _directions(camera: Camera) -> Float32[np.ndarray, "3 h w"]:
    return np.moveaxis(camera.rays(), -1, 0).copy()


@dataclass(eq=False)
class Backdrop:
    """The picture of a background, in linear light, one row for each row of samples."""

    ambient: Float32[np.ndarray, "h w 3"]
    direct: Float32[np.ndarray, "h w 3"]  # sunlight: absent in shadow
    points: Float32[np.ndarray, "h w 3"]  # the visible points, in world coordinates
    distance: Float32[np.ndarray, "h w"]  # metres from the eye


@dataclass(frozen=True)
class Background:
    """A background: `draw` makes its picture along the camera's rays, and `light` lights both the picture and the
    objects."""

    light: Light
    draw: Callable[[Rays, Light], Backdrop]


def smoothstep(low: float, high: float, x: np.ndarray) -> np.ndarray:
    """Return 0 below `low`, 1 above `high`, and a smooth step between. With `low` above `high` the step falls."""
    t = np.clip((x - np.float32(low)) / np.float32(high - low), 0, 1)
    return t * t * (3 - 2 * t)


def fraction(x: np.ndarray) -> np.ndarray:
    """Return `x % 1`, in a tenth of the time."""
    return x - np.floor(x)


def tint(colors: np.ndarray, tone: Float32[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w 3"]:
    """Return the colours, or one colour, times the tone of each sample."""
    return store_in_planes(np.moveaxis(np.broadcast_to(colors, (*tone.shape, 3)), -1, 0) * tone)


def blend(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return `first` where `share` is 0, `second` where it is 1, and a mixture between."""
    return first + tint(second - first, share)


def paint(picture: np.ndarray, where: Bool[np.ndarray, "h w"], colors: np.ndarray) -> np.ndarray:
    """Return `colors` where `where` is true, `picture` elsewhere."""
    painted = np.array(np.broadcast_to(picture, (*where.shape, 3)), np.float32)
    np.copyto(painted, colors, where=where[..., None])
    return painted


def random_at(*keys: np.ndarray) -> np.ndarray:
    """Return a fixed pseudo-random number in 0..1 for each combination of whole numbers."""
    total = sum(key * factor for key, factor in zip(keys, (127.1, 311.7, 74.7), strict=False))
    return fraction(np.abs(np.sin(total.astype(np.float64))) * 43758.5453).astype(np.float32)


def lay_ground(
    scenery: Float32[np.ndarray, "h w 3"],
    scenery_distance: Float32[np.ndarray, "h w"],
    rays: Rays,
    light: Light,
    albedo: Float32[np.ndarray, "h w 3"],
) -> Backdrop:
    """Put sunlit ground of this albedo in front of scenery; shadows can fall on the ground, but not on the scenery."""
    distance = rays.to_ground()
    near = distance < np.minimum(scenery_distance, 60)
    ambient = paint(scenery, near, albedo * light.ambient(np.ones(1, albedo.dtype)))
    direct = paint(np.zeros_like(scenery), near, albedo * light.direct(np.full(1, rays.sun[2], albedo.dtype)))
    distance = np.where(near, distance, scenery_distance)
    return Backdrop(ambient, direct, rays.at(distance).astype(np.float32, copy=False), distance)


def draw_ground(
    rays: Rays,
    light: Light,
    scenery_distance: Float32[np.ndarray, "h w"],
    scenery: Callable[[Rays], Float32[np.ndarray, "h w 3"]],
    albedo: Callable[[Rays], Float32[np.ndarray, "h w 3"]],
) -> Backdrop:
    """Draw scenery and the ground's albedo along the rays of those rows that show some of it, and lay the ground in
    front."""
    near = rays.to_ground() < np.minimum(scenery_distance, 60)
    behind, before = _draw_rows(scenery, rays, ~near), _draw_rows(albedo, rays, near)
    return lay_ground(behind, scenery_distance, rays, light, before)


def _draw_rows(
    draw: Callable[[Rays], Float32[np.ndarray, "h w 3"]], rays: Rays, where: Bool[np.ndarray, "h w"]
) -> Float32[np.ndarray, "h w 3"]:
    picture, rows = store_in_planes(np.zeros((3, *where.shape), np.float32)), np.flatnonzero(where.any(1))
    if len(rows):
        shown = slice(rows[0], rows[-1] + 1)
        picture[shown] = draw(rays.only(shown))
    return picture


def ground_noise(rays: Rays, scale: float) -> Float32[np.ndarray, "h w 4"]:
    """Return noise on the ground. Noise of a large scale fades with distance, where it would be finer than the
    samples."""
    return store_in_planes(_ground_noise(rays.camera, scale)[:, rays.rows].copy())


@lru_cache(maxsize=3)  # most backgrounds of a view have noise of the same scales
def _ground_noise(camera: Camera, scale: float) -> Float32[np.ndarray, "4 h w"]:
    rays = Rays(camera)
    distance = rays.to_ground()
    fade = np.clip(1.4 - distance / 16, 0, 1) if scale > 0.2 else np.ones_like(distance)
    return noise_below(rays.at(distance), scale, fade)


def fog(backdrop: Backdrop, color: np.ndarray, share: Float32[np.ndarray, "h w"], where: np.ndarray) -> None:
    """Mix fog of a colour into the samples where `where` is true, with the weight `share`; changes `backdrop` in
    place."""
    share = np.where(where, share, 0).astype(np.float32)
    backdrop.ambient = tint(backdrop.ambient, 1 - share) + tint(color, share)
    backdrop.direct = tint(backdrop.direct, 1 - share)


@dataclass(frozen=True)
class Prop:
    """A body of parts (in metres, feet at z = 0) that stands in a background."""

    parts: tuple[Part, ...]
    position: tuple[float, float, float]
    scale: float
    color: tuple[float, float, float]


def set_props(backdrop: Backdrop, rays: Rays, light: Light, props: Sequence[Prop]) -> Bool[np.ndarray, "h w"]:
    """Draw props into a backdrop, in place; returns a mask of the samples they cover."""
    covered = np.zeros(backdrop.distance.shape, bool)
    placed = [(_prop_mesh(tuple(prop.parts)), Pose(prop.position, 0.0, prop.scale)) for prop in props]
    for prop, samples in zip(props, trace(placed, rays.camera), strict=True):
        at = samples.rows, samples.columns
        albedo = np.asarray(prop.color, np.float32) * (1 + 0.12 * noise(samples.world, 0.4)[:, 2:3])
        toward = np.clip(dot(samples.normals, rays.sun), 0, 1)[:, None]
        backdrop.ambient[at] = albedo * light.ambient(samples.normals[:, 2:])
        backdrop.direct[at] = albedo * light.direct(toward)
        backdrop.points[at] = samples.world
        backdrop.distance[at] = np.linalg.norm(samples.world - rays.eye, axis=1)
        covered[at] = True
    return covered


@lru_cache(maxsize=64)
def _prop_mesh(parts: tuple[Part, ...]) -> Mesh:
    vertices, faces, normals, cell = mesh_parts(parts, 64)
    return Mesh(vertices, faces, normals, np.ones(len(vertices), np.float32), 1.0, np.zeros(3, np.float32), cell)
