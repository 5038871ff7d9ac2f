"""Limits on an animal's size, which keep it inside the frame and apart from other animals in every slot, and advice on
which dimension of its body to change.

Distances are measured at the extremes of every slot's bounds: to the frame under every camera, and to the planes
between the slots of a relation or a layout. If no animal crosses these, no two animals can touch. Widths are measured
in views 0 to 11, and keep an animal recognisable at 64 pixels.

All built-in animals keep all limits. A user's animal must keep the distances in pairs. It needn't keep those in scenes
of many objects, as it may be used in pairs alone.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.billboard import make_billboard
from menagerie.envs.drawing.camera import VIEWS, Camera, view_of
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.placement import UPRIGHT, Pose, RestPose, pose_in_slot, read_poses
from menagerie.envs.drawing.raster import to_world
from menagerie.envs.drawing.shadows import SOFTNESS, TEXELS, light_space
from menagerie.envs.shapes.mesh import Mesh, animal_mesh
from menagerie.envs.slots import LAYOUT_SLOTS, PAIR_SLOTS, SLOTS, Slot, place_of

MARGIN = 1.0  # percent of the image's side between an animal and the frame
WIDTH_VIEWS = range(12)
MOST_CORNERS = 1000  # of a convex hull
# Planes that bound a slot: axis, position in metres, and the side on which the slot lies. An animal in the upper slot
# stands above its plane, whatever its form.
LEFT, RIGHT, LOWER = (0, 0.0, -1), (0, 0.0, 1), (2, 1.40, -1)
SIDES = {
    "left": (LEFT,),
    "right": (RIGHT,),
    "under": (LOWER,),
    "lower left": (LOWER, LEFT),
    "lower right": (LOWER, RIGHT),
    "upper left": (LEFT,),
    "upper right": (RIGHT,),
}
# Planes between rows, y in metres: no two objects of different rows touch. High objects float behind the front row.
ROWS = {"front": (-np.inf, -0.51), "near": (-0.51, 0.67), "high": (-0.51, np.inf), "back": (0.67, np.inf)}
CAMERAS = {view.camera: Camera(100, view) for view in VIEWS}.values()
SUNS = {view.light: view.sun for view in VIEWS}.values()
EDGES = ("left", "right", "upper", "lower")  # of the image
ACROSS, HEIGHT = "length or width", "height"  # dimensions of the body
PERCENT = "% of the image"

Found = tuple[float, str, str]  # a value, where it is found, and the dimension of the body that decides it
Placed = tuple[str, Float32[np.ndarray, "n 3"]]  # a slot, and world points that enclose an animal there


class Measured(NamedTuple):
    """That of an animal's values which comes nearest to a limit."""

    limit: "Limit"
    value: float
    place: str
    side: str
    """The dimension of the body that decides the value: "length or width", or "height"."""

    @property
    def kept(self) -> bool:
        """Whether the value is within the limit."""
        return self.limit.low <= self.value <= self.limit.high

    @property
    def advice(self) -> str:
        """What to change so that the animal keeps the limit."""
        if "least" in self.limit.name:
            return "give it a greater size, or make it longer for its height"
        return f"give it a smaller size, or reduce its {self.side}"


class Limit(NamedTuple):
    """A limit on an animal's shape in some slots."""

    name: str
    slots: tuple[str, ...]
    find: Callable[[str, Any, tuple[str, ...]], Iterable[Found]]
    """Finds the values of an animal, by its name and itself, in slots."""
    unit: str
    low: float = -np.inf
    high: float = np.inf

    @property
    def bound(self) -> str:
        """The bound as text: ">= 1" or "<= 35"."""
        return f">= {self.low:g}" if self.high == np.inf else f"<= {self.high:g}"

    def measure(self, name: str, animal) -> Measured:
        """Measure an animal, which has this name in its world."""
        nearest = min if self.high == np.inf else max
        return Measured(self, *nearest(self.find(name, animal, self.slots)))


def frame_gaps(name: str, animal, slots: tuple[str, ...]) -> Iterator[Found]:
    """Yield the least distance to the frame in percent, and its nearest edge, in each slot and camera."""
    for (slot, points), camera in product(outermost_points(name, animal, slots), CAMERAS):
        x, y = camera.project(points)[:, :2].T
        distances = (x.min(), 100 - x.max(), y.min(), 100 - y.max())
        edge = EDGES[int(np.argmin(distances))]
        yield float(min(distances)), f"slot {slot!r}, {edge} edge", HEIGHT if edge == "upper" else ACROSS


def plane_gaps(name: str, animal, slots: tuple[str, ...], dimension: str = ACROSS) -> Iterator[Found]:
    """Yield the least distance in metres to each plane that bounds a slot in a dimension; it is negative beyond one."""
    for slot, points in outermost_points(name, animal, slots):
        for axis, plane, side in planes(slot):
            if dimension == (HEIGHT if axis == 2 else ACROSS):
                yield float((side * (points[:, axis] - plane)).min()), f"slot {slot!r}", dimension


def planes(slot: str) -> tuple[tuple[int, float, float], ...]:
    """Return the planes that bound a slot: axis, position in metres, and the side on which the slot lies."""
    if not SLOTS[slot].row:
        return SIDES.get(place_of(slot), ())
    x, (front, back) = SLOTS[slot].position[0], ROWS[SLOTS[slot].row]
    return (1, front, 1), (1, back, -1), *((0, plane, np.sign(x - plane)) for plane in neighbours(slot))


def neighbours(place: str) -> Iterator[float]:
    """Yield the x in metres of planes half-way to each place of the same row that a layout combines with `place`."""
    x, row = SLOTS[place].position[0], SLOTS[place].row
    for other in SLOTS.values():
        if other.row == row and abs(other.position[0] - x) > 1:
            yield (x + other.position[0]) / 2


def sun_gaps(name: str, animal, slots: tuple[str, ...]) -> Iterator[Found]:
    """Yield the least distance to the border of the sun's depth map, in texels, over all suns, in each slot. The width
    of a soft edge is subtracted."""
    for slot, points in outermost_points(name, animal, slots):
        across = np.concatenate([light_space(points, sun)[:, :2] for sun in SUNS])
        yield float(min(across.min(), TEXELS - across.max())) - SOFTNESS, f"slot {slot!r}", ACROSS


def widths(name: str, animal, slots: tuple[str, ...], longest: bool = False) -> Iterator[Found]:
    """Yield an animal's width on the image, in percent, in each view and slot but that of single objects. With
    `longest`, the longer side of a cut-out, which may be narrow and tall: by that it is recognised."""
    for slot, view in product((slot for slot in slots if slot != "center"), WIDTH_VIEWS):
        width, height = screen_sides(name, animal, slot, view)
        side = max(width, height) if longest and isinstance(animal, Cutout) else width
        yield side, f"slot {slot!r}, view {view}", ACROSS


@lru_cache(maxsize=1024)
def screen_sides(name: str, animal, slot: str, view: int) -> tuple[float, float]:
    """The width and the height of an animal on the image, in percent."""
    if isinstance(animal, Cutout):
        corners = make_billboard(animal, name, slot, view).corners
    else:
        mesh = animal_mesh(animal)
        corners = to_world(mesh, pose_in_slot(name, slot, view), hull(mesh))
    width, height = np.ptp(Camera(100, view_of(view)).project(corners)[:, :2], axis=0)
    return float(width), float(height)


@lru_cache(maxsize=2)
def outermost_points(name: str, animal, slots: tuple[str, ...]) -> list[Placed]:
    """Return each slot with world points that enclose an animal at all extremes of the slot's bounds.

    A cut-out stands upright, even if it has the name of a built-in animal, and turns as cut-outs do.
    """
    mesh, is_cutout = animal_mesh(animal), isinstance(animal, Cutout)
    settled = UPRIGHT if is_cutout else read_poses().get(name, UPRIGHT)
    poses = {slot: extremes(SLOTS[slot], settled) for slot in slots}
    if is_cutout:
        poses = {slot: map(animal.stand, its) for slot, its in poses.items()}
    corners = hull(mesh)
    return [(slot, np.concatenate([to_world(mesh, pose, corners) for pose in its])) for slot, its in poses.items()]


@lru_cache(maxsize=8)
def hull(mesh: Mesh) -> Float32[np.ndarray, "n 3"]:
    """Return the vertices of the convex hull; no other vertex can leave the frame before these.

    Of more than `MOST_CORNERS`, as round bodies have, it returns only those that reach farthest in evenly spread
    directions, which loses less than two millimetres.
    """
    from scipy.spatial import ConvexHull

    corners = mesh.vertices[ConvexHull(mesh.vertices.astype(np.float64)).vertices]
    if len(corners) <= MOST_CORNERS:
        return corners
    height, turn = np.linspace(-1, 1, MOST_CORNERS), np.arange(MOST_CORNERS) * np.pi * (3 - 5**0.5)  # a golden spiral
    around = np.sqrt(1 - height**2)
    directions = np.array([around * np.cos(turn), around * np.sin(turn), height], np.float32)
    return corners[np.unique((corners @ directions).argmax(0))]


def extremes(slot: Slot, settled: RestPose) -> Iterator[Pose]:
    """Yield poses at the ends of a slot's bounds, at its greatest scale."""
    scale = slot.widest
    for yaw, turn, across, away in product(slot.yaws, (-1, -0.5, 0, 0.5, 1), (-1, 1), (-1, 1)):
        x, y, z = slot.position
        position = (x + across * slot.shift_range[0], y + away * slot.shift_range[1], z + settled.lift * scale)
        yield Pose(position, yaw + turn * slot.yaw_range, scale, settled)


# An animal that misses one of these can't be in a world.
REQUIRED = (
    Limit("distance to the frame", PAIR_SLOTS, frame_gaps, PERCENT, low=MARGIN),
    Limit("distance to the half beside", PAIR_SLOTS, plane_gaps, "m", low=0.0),
    Limit("distance to the half above", PAIR_SLOTS, partial(plane_gaps, dimension=HEIGHT), "m", low=0.0),
)
IN_PAIRS = (
    *REQUIRED,
    Limit("width in a pair, least", PAIR_SLOTS, partial(widths, longest=True), PERCENT, low=15.0),
    Limit("width in a pair, greatest", PAIR_SLOTS, widths, PERCENT, high=36.0),
)
IN_LAYOUTS = (
    Limit("in layouts, distance to the frame", LAYOUT_SLOTS, frame_gaps, PERCENT, low=MARGIN),
    Limit("in layouts, distance to neighbours", LAYOUT_SLOTS, plane_gaps, "m", low=0.0),
    Limit("in layouts, distance to the sun's map", LAYOUT_SLOTS, sun_gaps, "texels", low=0.0),  # else shadows are cut
    Limit("in layouts, least width", LAYOUT_SLOTS, partial(widths, longest=True), PERCENT, low=12.0),
)
