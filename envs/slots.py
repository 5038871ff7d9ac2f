"""Slots: the places and facings of objects, the bounds within which views vary them, and sizes.

World units: metres, x to the right of the image, y away from the camera, z up, the ground at z = 0. Every animal is
built to about the same visual size before `scale` is applied.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

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


# The slots of objects that face inward or either way; they have the names of their places.
SLOTS: dict[str, Slot] = {
    # For scenes of a single object. Its bounds span the positions and directions of left/right pairs, so that an animal
    # is seen alone in all the ways in which it stands in a pair. For above/under pairs see SINGLE_SLOTS.
    "center": Slot((0.0, 0.0, 0.0), 1.0, (-27.0, -153.0), shift_range=(0.88, 0.1), scale_range=0.12),
    "left": Slot((-1.0, 0.0, 0.0), 0.89, (-27.0,)),
    "right": Slot((1.0, 0.0, 0.0), 0.89, (-153.0,)),
    # The upper one floats: an object to stand on would be the same height for all animals.
    "under": Slot((0.0, -0.6, 0.0), 0.78, (-27.0, -153.0), shift_range=(0.35, 0.05)),
    "above": Slot((0.0, 0.15, 1.43), 0.78, (-27.0, -153.0), shift_range=(0.35, 0.05)),
    # Four places for counting, any of which may be empty.
    "lower left": Slot((-0.92, -0.6, 0.0), 0.68, (-27.0, -153.0), shift_range=(0.08, 0.05)),
    "lower right": Slot((0.92, -0.6, 0.0), 0.68, (-27.0, -153.0), shift_range=(0.08, 0.05)),
    "upper left": Slot((-0.92, 0.15, 1.43), 0.68, (-27.0, -153.0), shift_range=(0.08, 0.05)),
    "upper right": Slot((0.92, 0.15, 1.43), 0.68, (-27.0, -153.0), shift_range=(0.08, 0.05)),
}
PLACES = tuple(SLOTS)
COUNTING = ("lower left", "lower right", "upper left", "upper right")
# On the left and right, objects face inward in the slots above and outward in these, at the same places.
OUTWARD = " outward"
SLOTS |= {
    place + OUTWARD: replace(SLOTS[place], yaws=tuple(-180.0 - yaw for yaw in SLOTS[place].yaws))
    for place in ("left", "right")
}


class LayoutPlace(NamedTuple):
    """Where a place of layouts lies among the others; relations follow from that (envs/layouts.py)."""

    column: float  # from left to right, 0 in the middle
    row: str  # "front", "near", "back", or "high", which floats above the front row


def row_of_places(
    row: str, y: float, z: float, scale: float, at: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, Slot, LayoutPlace]]:
    """Yield the name, slot and place of each place in a row. y and z are in metres; `at` gives the column and x in
    metres of each name."""
    for name, (column, x) in at.items():
        slot = Slot((x, y, z), scale, (-27.0, -153.0), shift_range=(0.04, 0.04))
        yield f"{row} {name}", slot, LayoutPlace(column, row)


# Places of scenes of two to six objects. Bodies in two of them can't touch, whatever a layout combines
# (envs/layouts.py), and all are in the sun's depth map: what is farther back would throw its shadow beyond it.
_LAYOUT_PLACES = (
    *row_of_places("front", -1.0, 0.0, 0.55, {"left": (-2, -1.07), "middle": (0, 0.0), "right": (2, 1.07)}),
    *row_of_places(
        *("near", 0.0, 0.0, 0.60),
        {"left": (-1.5, -0.94), "middle left": (-0.5, -0.32), "middle right": (0.5, 0.32), "right": (1.5, 0.94)},
    ),
    *row_of_places("back", 1.4, 0.0, 0.68, {"left": (-2, -1.30), "middle": (0, 0.0), "right": (2, 1.30)}),
    *row_of_places("high", 0.15, 1.43, 0.62, {"left": (-2, -1.22), "middle": (0, 0.0), "right": (2, 1.22)}),
)
PAIR_SLOTS = tuple(SLOTS)  # all slots so far
LAYOUT_PLACES: dict[str, LayoutPlace] = {name: place for name, _, place in _LAYOUT_PLACES}
SLOTS |= {name: slot for name, slot, _ in _LAYOUT_PLACES}  # at the end: scene tables hold numbers of slots


def place_of(slot: str) -> str:
    """Return the slot's name without its facing: "left" for "left outward"."""
    return slot.removesuffix(OUTWARD)


@cache
def facings(place: str) -> tuple[str, ...]:
    """Return all slots at a place: "left" and "left outward"."""
    return tuple(slot for slot in SLOTS if place_of(slot) == place)


# The relation of two slots, whose names are sorted as in `Scene.objects`.
RELATIONS: dict[tuple[str, ...], str] = {("left", "right"): "left/right", ("above", "under"): "above/under"}
SLOTS_OF = {relation: slots for slots, relation in RELATIONS.items()}
# Slots of single-object scenes, by the relation of the pairs in the same split. They cover the places of those pairs: a
# model could learn a place that only pairs have like an attribute, without the relation.
SINGLE_SLOTS: dict[str, tuple[str, ...]] = {"left/right": ("center",), "above/under": SLOTS_OF["above/under"]}
