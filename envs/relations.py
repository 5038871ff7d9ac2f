"""Spatial relations of two objects. To add one, add an entry to `RELATIONS`.

A relation of three objects, such as "between", can't be one: graphs and captions relate two. In layouts the first
entry that decides about two slots names their relation, so a new entry changes captions unless it is the last."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from menagerie.envs.slots import SLOTS, Slot, place_of

ASIDE = 0.7  # metres to the side from which two objects are left and right of each other
BESIDE = 1.2  # columns apart from which two objects are left and right of each other, whatever their rows
Position = tuple[float, float, float]  # x, y, z in metres: to the right, away from the camera, up
DEPTHS = ("front", "near", "back")  # rows on the ground, the foremost first


class SpatialRelation(NamedTuple):
    """A relation of a first and a second object: of "left/right", the left one is the first."""

    predicates: tuple[str, str]
    """In words, what the first object is to the second, and the second to the first (OC-CLIP, A.5.1)."""
    slots: tuple[str, str]
    """The slots of the first and the second object in scenes of pairs."""
    single_slots: tuple[str, ...]
    """The slots of scenes of one object in splits with these pairs. They cover the places of the pairs: a model could
    learn a place that only pairs have like an attribute, without the relation."""
    precedes: Callable[[Slot, Slot], bool]
    """Whether objects in two slots of layouts are the first and the second one, if no relation above decides."""
    ahead: Callable[[Position, Position], float]
    """The same by positions in metres, from which the audit derives relations anew: positive if an object at the first
    position is the first one, negative if it is the second, 0 if this relation says nothing of them."""
    level: str
    """The attribute of a slot that is equal where neither object can be called the first: "column" or "row"."""
    axis: int
    """Where the first comes before the second: 0 down the image, 1 to the right, 2 away from the camera."""


# By name: the words of both objects in hold-out rules.
RELATIONS: dict[str, SpatialRelation] = {
    "left/right": SpatialRelation(
        ("to the left of", "to the right of"),
        ("left", "right"),
        ("center",),
        lambda one, other: other.column - one.column >= BESIDE,
        lambda one, other: (other[0] - one[0]) * (abs(other[0] - one[0]) > ASIDE),
        level="column",
        axis=1,
    ),
    "above/under": SpatialRelation(
        ("above", "under"),
        ("above", "under"),
        ("above", "under"),
        lambda one, other: (one.row, other.row) == ("high", "front"),
        lambda one, other: one[2] - other[2],
        level="row",
        axis=0,
    ),
    "front/behind": SpatialRelation(
        ("in front of", "behind"),
        ("front middle", "back middle"),
        ("front middle", "back middle"),
        lambda one, other: one.row in DEPTHS and other.row in DEPTHS[DEPTHS.index(one.row) + 1 :],
        lambda one, other: other[1] - one[1],
        level="row",
        axis=2,
    ),
}


def pair_slots() -> list[tuple[str, str]]:
    """The slots of pairs in each relation, without those that are also in layouts."""
    return [its.slots for its in RELATIONS.values() if not SLOTS[its.slots[0]].row]


@cache
def relation_from(first: str, second: str) -> str:
    """Return the relation whose first object is in slot `first` and whose second one is in slot `second`; "" if there
    is none in this order. At most one is true of two slots."""
    one, other = SLOTS.get(first), SLOTS.get(second)
    if not (one and other and one.row and other.row):
        places = place_of(first), place_of(second)
        return next((name for name, its in RELATIONS.items() if its.slots == places), "")
    for name, its in RELATIONS.items():
        if its.precedes(one, other) or its.precedes(other, one):
            return name if its.precedes(one, other) else ""
    return ""


@cache
def truth(name: str, first: str, second: str) -> bool | None:
    """Whether two objects in these slots are the first and the second one of relation `name`.

    In layouts it is also false if they have another relation and are level in this one, such as in one column for
    left/right. Otherwise None: no caption, true or false, may say it.
    """
    there, back = relation_from(first, second), relation_from(second, first)
    if name in (there, back):
        return name == there
    one, other = SLOTS.get(first), SLOTS.get(second)
    if not ((there or back) and one and other and one.row and other.row):
        return None
    return False if getattr(one, its := RELATIONS[name].level) == getattr(other, its) else None
