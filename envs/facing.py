"""Which way the left and the right thing of a scene face: inward in the slots of `menagerie.envs.slots`, outward in
these.

An outward slot is its inward one with the thing turned round, under a name of its own, so that scenes are as they were.
Image stores are named by the sources that draw, of which this is none: the rule may not change, or stores would hold
scenes that are drawn in another way by now. Another rule takes another name.
"""

from dataclasses import replace
from functools import cache

from menagerie.envs.slots import SLOTS, Slot

OUTWARD = " outward"


def turned_round(slot: Slot) -> Slot:
    """The same place for a thing that faces the other side of the image: mirrored, 0 is -180 degrees."""
    return replace(slot, yaws=tuple(-180.0 - yaw for yaw in slot.yaws))


def place_of(slot: str) -> str:
    """The slot without its facing: "left" of "left outward"."""
    return slot.removesuffix(OUTWARD)


@cache
def facings(place: str) -> tuple[str, ...]:
    """All slots at a place: "left" and "left outward"."""
    return tuple(slot for slot in SLOTS if place_of(slot) == place)


# Places by name; what varies there is the facing.
PLACES = tuple(SLOTS)
SLOTS.update({place + OUTWARD: turned_round(SLOTS[place]) for place in ("left", "right")})
