"""What scenes share at one resolution: placed animals, and backgrounds along the camera's rays."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float32

from menagerie.envs.animals import load_animal
from menagerie.envs.backgrounds import load_background
from menagerie.envs.drawing.background import Rays
from menagerie.envs.drawing.camera import Camera, supersampling
from menagerie.envs.drawing.placement import Pose, place
from menagerie.envs.drawing.shading import tonemap
from menagerie.envs.drawing.shadows import light_space
from menagerie.envs.drawing.view import View
from menagerie.envs.shapes.mesh import Mesh, animal_mesh


@dataclass(frozen=True, eq=False)
class Ground:
    """A background in display colours, one row for each row of samples."""

    lit: Float32[np.ndarray, "h w 3"]
    unlit: Float32[np.ndarray, "h w 3"]  # in full shadow
    light_points: Float32[np.ndarray, "h w 3"]  # the visible points, in light space
    distance: Float32[np.ndarray, "h w"]  # metres from the eye


def camera(resolution: int, view: View) -> Camera:
    """The camera of a resolution; its size counts samples, not pixels."""
    return Camera(resolution * supersampling(resolution), view)


@lru_cache(maxsize=16)
def ground(name: str, resolution: int, view: View) -> Ground:
    """The background called `name`, empty."""
    background = load_background(name)
    drawn = background.draw(Rays(camera(resolution, view)), background.light)
    lit, unlit = tonemap(drawn.ambient + drawn.direct), tonemap(drawn.ambient)
    return Ground(lit, unlit, light_space(drawn.points, view.sun), drawn.distance)


def placed(animal: str, slot: str, view: int, size: str = "") -> tuple[Mesh, Pose]:
    """The mesh and pose of an animal in a slot in a view."""
    return animal_mesh(load_animal(animal)), place(animal, slot, view, size)


def to_bytes(display: np.ndarray) -> np.ndarray:
    """Values in 0..1 as uint8."""
    return (display * np.float32(255) + np.float32(0.5)).astype(np.uint8)
