"""Things of a world that are photographs: which one a view shows, how large it is, and how it stands."""

import zlib
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.placement import Pose
from menagerie.envs.photographs.picture import Photograph
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.slots import SLOTS

THICKNESS = 0.04  # metres: of the slab that stands for a cut-out where limits are measured
DISTANCE = 7.3  # metres, about: from the camera to the slots
LEAST_SHARP = 0.5  # pixels of the photograph for each pixel of the scene
_YAWS = sorted({yaw for slot in SLOTS.values() for yaw in slot.yaws})


@dataclass(frozen=True, eq=False)
class Cutout:
    """One or several photographs of one kind of thing, each `size` metres along its longest side."""

    photographs: tuple[Photograph, ...]
    size: float
    hover: float = 0.0  # metres between the ground and the lowest point
    mirrored: bool = True
    """Whether a thing that faces left is the photograph mirrored; if not, it is always shown as it was taken."""
    natural: bool = False
    """Whether it has its own colours; if not, it has a texture's, as bright as its own."""

    def shown(self, name: str, view: int) -> Photograph:
        """The photograph that a view shows; the same in all slots."""
        random = np.random.default_rng(zlib.crc32(f"photograph|{name}|{view}".encode()))
        return self.photographs[random.integers(len(self.photographs))]

    def metres(self, photograph: Photograph) -> tuple[float, float]:
        """Width and height of a photograph."""
        longest = max(photograph.size)
        width, height = (self.size * side / longest for side in photograph.size)
        return width, height

    def pixels_at(self, resolution: int) -> float:
        """Pixels that a photograph must have along its longest side, to be drawn at a resolution."""
        largest = self.size * max(slot.widest for slot in SLOTS.values()) * Camera(resolution).focal / DISTANCE
        return largest * LEAST_SHARP

    def mesh(self) -> Mesh:
        """A slab for each photograph, by which the limits of a world's animals are measured."""
        corners = [slab(*self.metres(photograph)) for photograph in self.photographs]
        vertices = np.concatenate(corners).astype(np.float32)
        faces = np.zeros((0, 3), np.int32)
        normals, ambient = np.zeros_like(vertices), np.ones(len(vertices), np.float32)
        return Mesh(vertices, faces, normals, ambient, 1.0, np.array([0, 0, -self.hover], np.float32), THICKNESS)

    def stand(self, pose: Pose) -> Pose:
        """How a photograph stands where a body would have a pose: its picture turned to the camera by the pose's
        deviation from its slot's direction, so that none is squeezed."""
        return replace(pose, yaw=pose.yaw - nearest_yaw(pose.yaw))

    def faces_left(self, pose: Pose) -> bool:
        """Whether a thing with a pose faces the left side of the image, and is drawn mirrored."""
        return self.mirrored and nearest_yaw(pose.yaw) < -90


def nearest_yaw(yaw: float) -> float:
    """The direction of a slot that a pose's yaw deviates from, in degrees."""
    return min(_YAWS, key=lambda slot_yaw: abs(slot_yaw - yaw))


def slab(width: float, height: float) -> Float32[np.ndarray, "8 3"]:
    """Corners of an upright slab in metres, its lower edge at height 0."""
    sides = ((-width / 2, width / 2), (-THICKNESS / 2, THICKNESS / 2), (0.0, height))
    return np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(8, 3).astype(np.float32)
