"""The objects that scenes at one resolution share: cameras, backgrounds along the camera's rays, and objects in a slot
of a view."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.catalog import load_animal, load_background, load_texture
from menagerie.envs.custom.cutouts import load_cutout
from menagerie.envs.drawing.background import Backdrop, Rays
from menagerie.envs.drawing.billboard import (
    billboard_shadow,
    brightness,
    contact,
    make_billboard,
    matte_skin,
    trace_billboard,
)
from menagerie.envs.drawing.camera import Camera, View, supersampling, view_of
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.placement import Pose, pose_in_slot
from menagerie.envs.drawing.raster import trace
from menagerie.envs.drawing.shading import Skin, albedo, skin, tonemap
from menagerie.envs.drawing.shadows import light_space, reach_of, receiving_points, shadow_map
from menagerie.envs.scene import Object
from menagerie.envs.shapes.mesh import Mesh, animal_mesh
from menagerie.envs.shapes.vectors import dot, normalize


@dataclass(frozen=True, eq=False)
class Ground:
    """A background, one row for each row of samples."""

    drawn: Backdrop
    light_points: Float32[np.ndarray, "h w 3"]  # the visible points, in light space
    reach: Float32[np.ndarray, "rows columns 4"]  # of these points, see `reach_of`

    @property
    def lit(self) -> Float32[np.ndarray, "h w 3"]:
        """Display colours."""
        return np.ascontiguousarray(tonemap(self.drawn.ambient + self.drawn.direct))

    @property
    def unlit(self) -> Float32[np.ndarray, "h w 3"]:
        """Display colours in full shadow."""
        return np.ascontiguousarray(tonemap(self.drawn.ambient))


@lru_cache(maxsize=16)
def camera(resolution: int, view: View) -> Camera:
    """Return the camera of a resolution; its size counts samples, not pixels."""
    return Camera(resolution * supersampling(resolution), view)


@lru_cache(maxsize=16)
def ground(name: str, resolution: int, view: View) -> Ground:
    """Draw the background called `name`, without objects on it."""
    background = load_background(name)
    drawn = background.draw(Rays(camera(resolution, view)), background.light)
    points = light_space(drawn.points, view.sun)
    return Ground(drawn, points, reach_of(points, supersampling(resolution)))


class EntryKey(NamedTuple):
    """An animal in a slot, view and size: identifies the atlas entry that shows it in all textures."""

    animal: str
    slot: str
    view: int
    size: str = ""

    @classmethod
    def of(cls, obj: Object, view: int) -> "EntryKey":
        """Return the key for an object of a scene."""
        return cls(obj.animal, obj.slot, view, obj.size)


class BodyObject:
    """A modelled animal, whose shadow begins at its feet."""

    shades_itself = True

    def __init__(self, key: EntryKey, resolution: int) -> None:
        view = view_of(key.view)
        placed = mesh_in_slot(key)
        self.animal, self.mesh, self.sun = load_animal(key.animal), placed[0], view.sun
        (self.samples,) = trace([placed], camera(resolution, view))
        self.light_points = receiving_points(self.samples.world, self.samples.normals, self.sun)
        self.shadows = shadow_map(*placed, self.sun)
        self.tags = self.animal.tags(self.samples.body, 0.4 * self.mesh.cell)
        self.mirrored = np.clip(dot(self.samples.normals, normalize(self.sun + self.samples.to_eye)), 0, 1)

    def skin(self, texture: str) -> Skin:
        """Return the animal's surface at the samples, in the texture of that name."""
        worn = load_texture(texture)
        return skin(albedo(self.samples.body, self.tags, self.animal, self.mesh, worn), self.tags, worn, self.mirrored)

    def contact(self, points: Float32[np.ndarray, "h w 3"]) -> Float32[np.ndarray, "1 1"]:
        """Return a one for all points: a body's shadow map already begins at its feet."""
        return np.ones((1, 1), np.float32)


class BillboardObject:
    """A cut-out in a slot of a view: a photograph on a flat board, which throws no shadow on itself."""

    shades_itself = False

    def __init__(self, key: EntryKey, resolution: int, cutout: Cutout) -> None:
        view = view_of(key.view)
        self.board, self.natural, self.sun = make_billboard(cutout, *key), cutout.natural, view.sun
        self.samples, self.colors = trace_billboard(camera(resolution, view), self.board, supersampling(resolution))
        self.brightness = brightness(self.board, self.colors)
        normals = np.broadcast_to(self.board.normal, self.samples.world.shape)
        self.light_points = receiving_points(self.samples.world, normals, self.sun)
        self.shadows = billboard_shadow(self.board, self.sun)

    def skin(self, texture: str) -> Skin:
        """Return the photograph's own colours if the cut-out is natural, else the texture's colours with the
        photograph's brightness."""
        if self.natural:
            return matte_skin(self.colors)
        return matte_skin(np.clip(load_texture(texture).colors(self.samples.body) * self.brightness[:, None], 0, 1))

    def contact(self, points: Float32[np.ndarray, "h w 3"]) -> Float32[np.ndarray, "h w"]:
        """Return the share of the sun that the board's feet leave on ground points (in light space)."""
        return contact(self.board, points, self.sun)


Renderable = BodyObject | BillboardObject


def renderable(key: EntryKey, resolution: int, cutouts: Mapping[str, str]) -> Renderable:
    """Make the body or cut-out that `key` describes. `cutouts` maps the world's cut-outs to their hashes."""
    if key.animal in cutouts:
        return BillboardObject(key, resolution, load_cutout(cutouts[key.animal]))
    return BodyObject(key, resolution)


def mesh_in_slot(key: EntryKey) -> tuple[Mesh, Pose]:
    """Return the mesh and pose of the modelled animal that `key` describes."""
    return animal_mesh(load_animal(key.animal)), pose_in_slot(*key)
