"""Slots: the places and facings of objects, the bounds within which views vary them, and sizes.

World units: metres, x to the right of the image, y away from the camera, z up, the ground at z = 0. Every animal is
built to about the same visual size before `scale` is applied.
"""

from dataclasses import dataclass
from functools import cache

from menagerie.envs.core.errors import choose


@dataclass(frozen=True)
class Slot:
    """A place for one object: its position and scale, and the bounds within which views vary them."""

    position: tuple[float, float, float]
    scale: float
    yaws: tuple[float, ...]  # degrees, a view takes one; 0 faces right, -90 the camera, -180 left
    yaw_range: float = 20.0  # +- degrees
    shift_range: tuple[float, float] = (0.06, 0.06)  # +- metres in x and y
    scale_range: float = 0.04  # +- share of the scale
    column: float = 0.0
    """From left to right, 0 in the middle."""
    row: str = ""
    """In layouts (`menagerie.envs.layouts`): "front", "near", "back", or "high", which floats above the front row."""

    @property
    def widest(self) -> float:
        """The greatest scale of an object in this slot."""
        return self.scale * (1 + self.scale_range) * max(SIZES.values())


# Factors on a slot's scale, far enough apart that a small object is smaller than any big one in every view. None is
# above 1: a slot has room for an animal of the usual size, and a smaller one about the same point lies inside that.
SIZES = {"small": 0.65, "big": 1.0}


def size_factor(size: str) -> float:
    """The factor by which a size scales an object; 1 for an object without a size ("")."""
    return SIZES[choose("size", size, SIZES)] if size else 1.0


EITHER = (-27.0, -153.0)  # yaws: to the right or to the left
OUTWARD = " outward"  # ends the names of slots that face away from the middle


def layout_row(row: str, y: float, z: float, scale: float, places: dict[str, tuple[float, float]]) -> dict[str, Slot]:
    """Make the slots of a row; y and z are in metres. `places` has the column and x in metres of each."""
    return {
        f"{row} {name}": Slot((x, y, z), scale, EITHER, shift_range=(0.04, 0.04), column=column, row=row)
        for name, (column, x) in places.items()
    }


# All slots. Scene tables hold their numbers, so a new one comes last.
SLOTS: dict[str, Slot] = {
    # For scenes of a single object. Its bounds span the positions and directions of left/right pairs, so that an animal
    # is seen alone in all the ways in which it stands in a pair. For other pairs see `menagerie.envs.relations`.
    "center": Slot((0.0, 0.0, 0.0), 1.0, EITHER, shift_range=(0.88, 0.1), scale_range=0.12),
    "left": Slot((-1.0, 0.0, 0.0), 0.89, (-27.0,), column=-1),
    "right": Slot((1.0, 0.0, 0.0), 0.89, (-153.0,), column=1),
    # The upper one floats: an object to stand on would be the same height for all animals.
    "under": Slot((0.0, -0.6, 0.0), 0.78, EITHER, shift_range=(0.35, 0.05)),
    "above": Slot((0.0, 0.15, 1.43), 0.78, EITHER, shift_range=(0.35, 0.05)),
    # Four places for counting, any of which may be empty.
    "lower left": Slot((-0.92, -0.6, 0.0), 0.68, EITHER, shift_range=(0.08, 0.05)),
    "lower right": Slot((0.92, -0.6, 0.0), 0.68, EITHER, shift_range=(0.08, 0.05)),
    "upper left": Slot((-0.92, 0.15, 1.43), 0.68, EITHER, shift_range=(0.08, 0.05)),
    "upper right": Slot((0.92, 0.15, 1.43), 0.68, EITHER, shift_range=(0.08, 0.05)),
    # On the left and right, objects face inward in the slots above and outward in these, at the same places.
    "left outward": Slot((-1.0, 0.0, 0.0), 0.89, (-153.0,), column=-1),
    "right outward": Slot((1.0, 0.0, 0.0), 0.89, (-27.0,), column=1),
    # For scenes of two to six objects. Bodies in two of these places can't touch, whatever a layout combines, and all
    # are in the sun's depth map: what is farther back would throw its shadow beyond it.
    **layout_row("front", -1.0, 0.0, 0.55, {"left": (-2, -1.07), "middle": (0, 0.0), "right": (2, 1.07)}),
    **layout_row(
        *("near", 0.0, 0.0, 0.60),
        {"left": (-1.5, -0.94), "middle left": (-0.5, -0.32), "middle right": (0.5, 0.32), "right": (1.5, 0.94)},
    ),
    **layout_row("back", 1.4, 0.0, 0.68, {"left": (-2, -1.30), "middle": (0, 0.0), "right": (2, 1.30)}),
    **layout_row("high", 0.15, 1.43, 0.62, {"left": (-2, -1.22), "middle": (0, 0.0), "right": (2, 1.22)}),
}
COUNTING = ("lower left", "lower right", "upper left", "upper right")
LAYOUT_SLOTS = tuple(name for name, slot in SLOTS.items() if slot.row)
PAIR_SLOTS = tuple(name for name, slot in SLOTS.items() if not slot.row)  # all others


def place_of(slot: str) -> str:
    """Return the slot's name without its facing: "left" for "left outward"."""
    return slot.removesuffix(OUTWARD)


PLACES = tuple(dict.fromkeys(map(place_of, SLOTS)))


@cache
def facings(place: str) -> tuple[str, ...]:
    """Return all slots at a place: "left" and "left outward"."""
    return tuple(slot for slot in SLOTS if place_of(slot) == place)
