"""Limits on an animal's size, which keep it inside the frame and apart from other animals in every slot, and advice on
which dimension of its body to change.

Distances are measured at the extremes of every slot's bounds: to the frame under every camera, and to the planes
between the slots of a relation or a layout. If no animal crosses these, no two animals can touch. Widths are measured
in views 0 to 11, and keep an animal recognisable at 64 pixels.

All built-in animals keep all limits. A user's animal must keep the distances in pairs. It needn't keep those in scenes
of many objects, as it may be used in pairs alone.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.billboard import make_billboard
from menagerie.envs.drawing.camera import VIEWS, Camera, view_of
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.placement import UPRIGHT, Pose, Settled, pose_in_slot, read_poses
from menagerie.envs.drawing.raster import to_world
from menagerie.envs.drawing.shadows import SOFTNESS, TEXELS, light_space
from menagerie.envs.shapes.mesh import Mesh, animal_mesh
from menagerie.envs.slots import LAYOUT_PLACES, PAIR_SLOTS, SLOTS, Slot, place_of

MARGIN = 1.0  # percent of the image's side between an animal and the frame
WIDTHS = (15.0, 36.0)  # percent of the image's side: least and greatest width of an animal in a pair
LAYOUT_WIDTH = 12.0  # the least one in scenes of many objects
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


class Measure(NamedTuple):
    """One limit on an animal's shape, the animal's value, and where the value comes nearest to the limit."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    place: str
    side: str
    """The dimension of the body that decides the value: "length or width", or "height"."""

    @property
    def kept(self) -> bool:
        """Whether the value is within the limit."""
        return self.low <= self.value <= self.high

    @property
    def bound(self) -> str:
        """The bound as text: ">= 1" or "<= 35"."""
        return f">= {self.low:g}" if self.high == np.inf else f"<= {self.high:g}"


def nearest(name: str, found: Iterable[Found], unit: str, low: float = -np.inf, high: float = np.inf) -> Measure:
    """Return the limit with that of the values found which comes nearest to it."""
    value, where, side = min(found) if high == np.inf else max(found)
    return Measure(name, value, unit, low, high, where, side)


def measures(name: str, animal) -> list[Measure]:
    """Return all limits on an animal in pairs, each with the animal's value."""
    shown, widths = zip(*widths_of(name, animal, sorted(set(PAIR_SLOTS) - {"center"})), strict=True)
    least = "longer side" if isinstance(animal, Cutout) else "width"
    return [
        *required(name, animal),
        nearest(f"{least} in a pair, least", shown, PERCENT, low=WIDTHS[0]),
        nearest("width in a pair, greatest", widths, PERCENT, high=WIDTHS[1]),
    ]


def required(name: str, animal) -> list[Measure]:
    """Return the distances of an animal to the frame and to the other animal's half; one that misses one of these
    limits can't be in a world."""
    placed = list(outermost(name, animal, PAIR_SLOTS))
    halves = list(gaps(placed))
    return [
        nearest("distance to the frame", frame_gaps(placed), PERCENT, low=MARGIN),
        nearest("distance to the half beside", (gap for gap in halves if gap[2] == ACROSS), "m", low=0.0),
        nearest("distance to the half above", (gap for gap in halves if gap[2] == HEIGHT), "m", low=0.0),
    ]


def layout_measures(name: str, animal) -> list[Measure]:
    """Return the limits on an animal in the places of layouts, each with the animal's value. Its shadow would be cut
    off beyond the sun's depth map."""
    placed = list(outermost(name, animal, LAYOUT_PLACES))
    lit = [(in_sun(points), f"slot {slot!r}", ACROSS) for slot, points in placed]
    widths = [shown for shown, _ in widths_of(name, animal, LAYOUT_PLACES)]
    return [
        nearest("in layouts, distance to the frame", frame_gaps(placed), PERCENT, low=MARGIN),
        nearest("in layouts, distance to neighbours", gaps(placed), "m", low=0.0),
        nearest("in layouts, distance to the sun's map", lit, "texels", low=0.0),
        nearest("in layouts, least width", widths, PERCENT, low=LAYOUT_WIDTH),
    ]


def advice(measure: Measure) -> str:
    """Say what to change so that an animal keeps a limit that it misses."""
    if "least" in measure.name:
        return "give it a greater size, or make it longer for its height"
    return f"give it a smaller size, or reduce its {measure.side}"


def frame_gaps(placed: Iterable[Placed]) -> Iterator[Found]:
    """Yield the least distance of points to the frame in percent, and its nearest edge, in each slot and camera."""
    for (slot, points), camera in product(placed, CAMERAS):
        x, y = camera.project(points)[:, :2].T
        distances = (x.min(), 100 - x.max(), y.min(), 100 - y.max())
        edge = EDGES[int(np.argmin(distances))]
        yield float(min(distances)), f"slot {slot!r}, {edge} edge", HEIGHT if edge == "upper" else ACROSS


def gaps(placed: Iterable[Placed]) -> Iterator[Found]:
    """Yield the least distance in metres of points to each plane that bounds their slot; it is negative beyond one."""
    for slot, points in placed:
        for axis, plane, side in planes(slot):
            distance = float((side * (points[:, axis] - plane)).min())
            yield distance, f"slot {slot!r}", HEIGHT if axis == 2 else ACROSS


def planes(slot: str) -> tuple[tuple[int, float, float], ...]:
    """Return the planes that bound a slot: axis, position in metres, and the side on which the slot lies."""
    if slot not in LAYOUT_PLACES:
        return SIDES.get(place_of(slot), ())
    x, (front, back) = SLOTS[slot].position[0], ROWS[LAYOUT_PLACES[slot].row]
    return (1, front, 1), (1, back, -1), *((0, plane, np.sign(x - plane)) for plane in neighbours(slot))


def neighbours(place: str) -> Iterator[float]:
    """Yield the x in metres of planes half-way to each place of the same row that a layout combines with `place`."""
    x, row = SLOTS[place].position[0], LAYOUT_PLACES[place].row
    for other, where in LAYOUT_PLACES.items():
        apart = abs(SLOTS[other].position[0] - x)
        if where.row == row and other != place and apart > 1:
            yield (x + SLOTS[other].position[0]) / 2


def in_sun(points: Float32[np.ndarray, "n 3"]) -> float:
    """Return the least distance of points to the border of the sun's depth map, in texels, over all suns. The width of
    a soft edge is subtracted."""
    across = np.concatenate([light_space(points, sun)[:, :2] for sun in SUNS])
    return float(min(across.min(), TEXELS - across.max())) - SOFTNESS


def widths_of(name: str, animal, slots: Iterable[str]) -> Iterator[tuple[Found, Found]]:
    """Yield the side by which an animal is recognised on the image and its width, in percent, in each slot and view.

    A cut-out may be narrow and tall, so it is recognised by its longer side, others by their width.
    """
    for slot, view in product(slots, WIDTH_VIEWS):
        if isinstance(animal, Cutout):
            corners = make_billboard(animal, name, slot, view).corners
        else:
            mesh = animal_mesh(animal)
            corners = to_world(mesh, pose_in_slot(name, slot, view), hull(mesh))
        screen = Camera(100, view_of(view)).project(corners)
        width, height = (float(side) for side in np.ptp(screen[:, :2], axis=0))
        where = f"slot {slot!r}, view {view}", ACROSS
        yield (max(width, height) if isinstance(animal, Cutout) else width, *where), (width, *where)


def outermost(name: str, animal, slots: Iterable[str]) -> Iterator[Placed]:
    """Yield each slot with world points that enclose an animal at all extremes of the slot's bounds.

    A cut-out stands upright, even if it has the name of a built-in animal, and turns as cut-outs do.
    """
    mesh, is_cutout = animal_mesh(animal), isinstance(animal, Cutout)
    settled = UPRIGHT if is_cutout else read_poses().get(name, UPRIGHT)
    for slot in slots:
        poses = [animal.stand(pose) if is_cutout else pose for pose in extremes(SLOTS[slot], settled)]
        yield slot, np.concatenate([to_world(mesh, pose, hull(mesh)) for pose in poses])


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


def extremes(slot: Slot, settled: Settled) -> Iterator[Pose]:
    """Yield poses at the ends of a slot's bounds, at its greatest scale."""
    scale = slot.widest
    for yaw, turn, across, away in product(slot.yaws, (-1, -0.5, 0, 0.5, 1), (-1, 1), (-1, 1)):
        x, y, z = slot.position
        position = (x + across * slot.shift_range[0], y + away * slot.shift_range[1], z + settled.lift * scale)
        yield Pose(position, yaw + turn * slot.yaw_range, scale, settled)
