"""Cut-out photographs as objects of a world: how their files are read and checked, which photograph a view shows, its
size, and how it stands."""

import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.picture_file import bilinear, read_pixels
from menagerie.envs.drawing.placement import Pose
from menagerie.envs.shapes.mesh import Mesh
from menagerie.envs.slots import SLOTS

FORMATS = ("PNG", "WEBP", "TIFF", "GIF")  # formats with an alpha channel that Pillow reads by itself
SMALLEST = 24  # pixels along the longest side of the part that isn't transparent
SOLID = 128  # alpha from which a pixel counts as part of the object
LEAST_COVERED = 0.02  # share of the picture that is solid
LEAST_CLEAR = 0.01  # share of the picture that is transparent
# The greatest share of each edge of the picture that may be solid. A trimmed picture touches its edges with an ear or a
# tail; a picture that cuts the object off has a long straight edge. The lower edge may be covered.
MOST_SOLID = {"left": 0.25, "right": 0.25, "upper": 0.25, "lower": 0.8}
GAMMA = np.float32(2.2)
LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)
BORDER = 1  # transparent pixels around the object, so that its edge fades out
THICKNESS = 0.04  # metres: thickness of the slab that stands for a cut-out when limits are measured
DISTANCE = 7.3  # metres, about: from the camera to the slots
LEAST_SHARP = 0.5  # pixels of the photograph for each pixel of the scene
_YAWS = sorted({yaw for slot in SLOTS.values() for yaw in slot.yaws})


@dataclass(frozen=True, eq=False)
class CutoutPhoto:
    """A cut-out, trimmed to the part that isn't transparent: linear red, green and blue times alpha, and alpha."""

    pixels: Float32[np.ndarray, "h w 4"]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the object in pixels."""
        height, width = self.pixels.shape[:2]
        return width - 2 * BORDER, height - 2 * BORDER

    @cached_property
    def luminance(self) -> float:
        """Mean luminance of the object, 0..1."""
        return float((self.pixels[..., :3] @ LUMINANCE).sum() / self.pixels[..., 3].sum())

    @cached_property
    def levels(self) -> tuple[Float32[np.ndarray, "h w 4"], ...]:
        """The pixels, and copies each half the size of the one before, down to one pixel along the shorter side."""
        levels = [self.pixels]
        while min(levels[-1].shape[:2]) > 1:
            levels.append(halve(levels[-1]))
        return tuple(levels)

    def lookup(
        self, across: Float32[np.ndarray, "*n"], up: Float32[np.ndarray, "*n"], spacing: float
    ) -> Float32[np.ndarray, "*n 4"]:
        """Return colours times alpha, and alpha, at shares of the object's width and height from its lower left corner.

        `spacing`: pixels of the photograph between neighbouring points; it decides which of `levels` is sampled.
        """
        wanted = int(np.clip(np.round(np.log2(max(spacing, 1.0))), 0, len(self.levels) - 1))
        width, height = self.size
        shrunk = np.float32(2.0**-wanted)
        column = (across * width + BORDER) * shrunk - np.float32(0.5)
        row = ((1 - up) * height + BORDER) * shrunk - np.float32(0.5)
        return bilinear(self.levels[wanted], column.astype(np.float32), row.astype(np.float32), "clear")


def halve(pixels: Float32[np.ndarray, "h w 4"]) -> Float32[np.ndarray, "h2 w2 4"]:
    """Return the means of 2 x 2 pixels; beyond an odd edge all is transparent."""
    height, width = pixels.shape[:2]
    even = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)))
    return even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2, 4).mean((1, 3))


def read_photograph(path: Path, content: bytes) -> CutoutPhoto:
    """Read the cut-out in a picture file's content; raises if it can't be drawn, and says what to do."""
    return trim(read_pixels(path, content, "RGBA", FORMATS), path)


def trim(pixels: UInt8[np.ndarray, "h w 4"], path: Path) -> CutoutPhoto:
    """Check a picture, and return the part of it that isn't transparent."""
    solid = pixels[..., 3] >= SOLID
    check_solid(path, solid)
    rows, columns = (np.flatnonzero((pixels[..., 3] > 0).any(axis)) for axis in (1, 0))
    inside = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float32) / 255
    alpha = inside[..., 3:]
    linear = np.concatenate([inside[..., :3] ** GAMMA * alpha, alpha], -1)
    return CutoutPhoto(np.pad(linear, ((BORDER, BORDER), (BORDER, BORDER), (0, 0))).astype(np.float32))


def check_solid(path: Path, solid: Bool[np.ndarray, "h w"]) -> None:
    """Raise if a picture is empty, has no transparent part, is too small, or cuts its object off."""
    if solid.mean() < LEAST_COVERED:
        raise UserError(f"{path} is empty: {solid.mean():.1%} of it is solid; trim it to its object")
    if 1 - solid.mean() < LEAST_CLEAR:
        raise UserError(f"{path} has no transparent pixels; cut the object out, and save it as PNG with transparency")
    longest = max(int(np.ptp(np.flatnonzero(solid.any(axis)))) + 1 for axis in (0, 1))
    if longest < SMALLEST:
        raise UserError(f"{path} shows an object of {longest} pixels; it must have at least {SMALLEST} along one side")
    edges = {"left": solid[:, 0], "right": solid[:, -1], "upper": solid[0], "lower": solid[-1]}
    for name, edge in edges.items():
        if edge.mean() > MOST_SOLID[name]:
            raise UserError(
                f"{path} touches its border along {edge.mean():.0%} of the {name} edge, which cuts the object off; "
                f"at most {MOST_SOLID[name]:.0%} may: use a picture that shows it whole"
            )


@dataclass(frozen=True, eq=False)
class Cutout:
    """One or several photographs of one kind of object, each `size` metres along its longest side."""

    photographs: tuple[CutoutPhoto, ...]
    size: float
    hover: float = 0.0  # metres between the ground and the lowest point
    mirrored: bool = True
    """Whether an object that faces left is drawn as the mirrored photograph; if not, photographs are never mirrored."""
    natural: bool = False
    """Whether the cut-out keeps its own colours; if not, it gets a texture's colours with the photograph's
    brightness."""

    def photograph_for(self, name: str, view: int) -> CutoutPhoto:
        """Return the photograph that a view shows, the same in all slots."""
        random = np.random.default_rng(zlib.crc32(f"photograph|{name}|{view}".encode()))
        return self.photographs[random.integers(len(self.photographs))]

    def metres(self, photograph: CutoutPhoto) -> tuple[float, float]:
        """Return width and height of a photograph in metres."""
        longest = max(photograph.size)
        width, height = (self.size * side / longest for side in photograph.size)
        return width, height

    def pixels_at(self, resolution: int) -> float:
        """Return the least length in pixels of a photograph's longest side that is sharp enough at a resolution."""
        largest = self.size * max(slot.widest for slot in SLOTS.values()) * Camera(resolution).focal / DISTANCE
        return largest * LEAST_SHARP

    def mesh(self) -> Mesh:
        """Make a mesh without faces: a slab for each photograph, by which the limits of a world are measured."""
        corners = [slab(*self.metres(photograph)) for photograph in self.photographs]
        vertices = np.concatenate(corners).astype(np.float32)
        faces = np.zeros((0, 3), np.int32)
        normals, ambient = np.zeros_like(vertices), np.ones(len(vertices), np.float32)
        return Mesh(vertices, faces, normals, ambient, 1.0, np.array([0, 0, -self.hover], np.float32), THICKNESS)

    def stand(self, pose: Pose) -> Pose:
        """Return `pose` with only its deviation from the slot's direction as yaw, so that the photograph is never seen
        from the side."""
        return replace(pose, yaw=pose.yaw - nearest_yaw(pose.yaw))

    def faces_left(self, pose: Pose) -> bool:
        """Whether an object in this pose is drawn mirrored: it faces left in the image, and `mirrored` allows it."""
        return self.mirrored and nearest_yaw(pose.yaw) < -90


def nearest_yaw(yaw: float) -> float:
    """Return the direction of a slot that is nearest to a pose's yaw, in degrees."""
    return min(_YAWS, key=lambda slot_yaw: abs(slot_yaw - yaw))


def slab(width: float, height: float) -> Float32[np.ndarray, "8 3"]:
    """Corners of an upright slab in metres, its lower edge at height 0."""
    sides = ((-width / 2, width / 2), (-THICKNESS / 2, THICKNESS / 2), (0.0, height))
    return np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(8, 3).astype(np.float32)
