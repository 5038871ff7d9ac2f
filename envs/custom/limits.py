"""Limits on an animal's size, which keep it inside the frame and apart from other animals in every slot, and advice on
which dimension of its body to change.

Distances to the frame and to the middle are measured at the extremes of every slot's bounds under every camera. If no
animal crosses the plane between the two slots of a relation, no two animals can touch. Widths are measured in views 0
to 11.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.camera import VIEWS, Camera, view_of
from menagerie.envs.drawing.card import card_of
from menagerie.envs.drawing.cutout import Cutout
from menagerie.envs.drawing.placement import UPRIGHT, Pose, Settled, place, read_poses
from menagerie.envs.drawing.raster import to_world
from menagerie.envs.shapes.mesh import Mesh, animal_mesh
from menagerie.envs.slots import PAIR_SLOTS, SLOTS, Slot, place_of

MARGIN = 1.0  # percent of the image's side between an animal and the frame
WIDTHS = (15.0, 36.0)  # percent of the image's side: least and greatest width of an animal in a pair
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
CAMERAS = {view.camera: Camera(100, view) for view in VIEWS}.values()
EDGES = ("left", "right", "upper", "lower")  # of the image
ACROSS, HEIGHT = "length or width", "height"  # dimensions of the body


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


def extents(mesh: Mesh) -> tuple[float, float, float]:
    """Return length (x, nose to tail), width (y) and height (z) of a body, in metres."""
    length, width, height = (float(side) for side in np.ptp(mesh.vertices, axis=0) * mesh.scale)
    return length, width, height


def required(mesh: Mesh, settled: Settled = UPRIGHT, stand: Callable[[Pose], Pose] | None = None) -> list[Measure]:
    """Measure the distances of a body to the frame and to the other animal's half.

    An animal that misses one of these limits can't be in a world. `stand` adjusts the pose of cut-outs, which don't
    stand as bodies do.
    """
    corners = hull(mesh)
    frame: list[tuple] = []
    halves: dict[int, list[tuple]] = {0: [], 2: []}
    for slot in PAIR_SLOTS:
        poses = [stand(pose) if stand else pose for pose in extremes(SLOTS[slot], settled)]
        points = np.concatenate([to_world(mesh, pose, corners) for pose in poses])
        frame += [frame_gap(camera.project(points), slot) for camera in CAMERAS]
        for axis, plane, side in SIDES.get(place_of(slot), ()):
            halves[axis].append((float((side * (points[:, axis] - plane)).min()), f"slot {slot!r}"))
    return [
        Measure("distance to the frame", *at(min(frame), "% of the image", MARGIN)),
        Measure("distance to the half beside", *at((*min(halves[0]), ACROSS), "m", 0.0)),
        Measure("distance to the half above", *at((*min(halves[2]), HEIGHT), "m", 0.0)),
    ]


def frame_gap(screen: Float32[np.ndarray, "n 3"], slot: str) -> tuple[float, str, str]:
    """Return the least distance of projected points to the frame in percent, the slot with the nearest edge, and the
    dimension of the body to change."""
    x, y = screen[:, :2].T
    gaps = (x.min(), 100 - x.max(), y.min(), 100 - y.max())
    edge = EDGES[int(np.argmin(gaps))]
    return float(min(gaps)), f"slot {slot!r}, {edge} edge", HEIGHT if edge == "upper" else ACROSS


def at(found: tuple[float, str, str], unit: str, low: float = -np.inf, high: float = np.inf) -> tuple:
    """Return all fields of a `Measure` except its name. `found` has the value, the place, and the dimension to
    change."""
    value, where, side = found
    return value, unit, low, high, where, side


def widths(name: str, animal) -> tuple[Measure, Measure]:
    """Return the least and the greatest width of an animal on the image, in percent, over all slots but the center and
    those of crowds. Their limits keep it recognisable at 64 pixels.

    A cut-out may be narrow and tall, so its longer side counts for the least width.
    """
    sides, found = [], []
    for slot, view in product(sorted(set(PAIR_SLOTS) - {"center"}), WIDTH_VIEWS):
        screen = Camera(100, view_of(view)).project(outermost(name, animal, slot, view))
        width, height = (float(side) for side in np.ptp(screen[:, :2], axis=0))
        found.append((width, f"slot {slot!r}, view {view}", ACROSS))
        sides.append((max(width, height), *found[-1][1:]) if isinstance(animal, Cutout) else found[-1])
    least, unit = "longer side" if isinstance(animal, Cutout) else "width", "% of the image"
    return (
        Measure(f"{least} in a pair, least", *at(min(sides), unit, low=WIDTHS[0])),
        Measure("width in a pair, greatest", *at(max(found), unit, high=WIDTHS[1])),
    )


def outermost(name: str, animal, slot: str, view: int) -> Float32[np.ndarray, "n 3"]:
    """Return world coordinates of points that enclose an animal in a slot in a view."""
    if isinstance(animal, Cutout):
        return card_of(animal, name, slot, view).corners
    mesh = animal_mesh(animal)
    return to_world(mesh, place(name, slot, view), hull(mesh))


def measures(name: str, animal) -> list[Measure]:
    """Return all limits on an animal, each with the animal's value; an animal of a world must keep the first three."""
    return [*required(animal_mesh(animal), settled_of(name, animal), stand=stand_of(animal)), *widths(name, animal)]


def misplaced(name: str, animal) -> str | None:
    """Describe the first required limit that `animal` misses, and say what to do; None if it keeps them all."""
    mesh, stand, settled = animal_mesh(animal), stand_of(animal), settled_of(name, animal)
    for measure in required(mesh, settled, stand=stand):
        if not measure.kept:
            value = f"{measure.name} is {measure.value:.2f} {measure.unit} in {measure.place}, must be {measure.bound}"
            return f"{name!r} doesn't fit: its {value}; {advice(measure)}"
    return None


def settled_of(name: str, animal) -> Settled:
    """Return the pose in which an animal rests on the ground. A cut-out stands upright, even if it has the name of a
    built-in animal."""
    return UPRIGHT if isinstance(animal, Cutout) else read_poses().get(name, UPRIGHT)


def stand_of(animal) -> Callable[[Pose], Pose] | None:
    """Return the function that adjusts a cut-out's pose; None for a body."""
    return animal.stand if isinstance(animal, Cutout) else None


def advice(measure: Measure) -> str:
    """Say what to change so that an animal keeps a limit that it misses."""
    if "least" in measure.name:
        return "give it a greater size, or make it longer for its height"
    return f"give it a smaller size, or reduce its {measure.side}"


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
