"""Scenes of two to six objects: which places a layout combines, and the relations of any two objects in a scene.

LAYOUTS["overlap"].places(4, random)   # the slots of four objects
relations_of(scene)                    # the one stated relation of each two of them
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Scene
from menagerie.envs.slots import LAYOUT_PLACES, RELATIONS, place_of

if TYPE_CHECKING:
    import numpy as np

MOST = 6  # objects in a layout
FRONT_AND_BEHIND = "front/behind"
BESIDE = 1.2  # columns apart from which two objects are stated to be left and right, whatever their rows
FRONT = ("front left", "front middle", "front right")
# In overlap the object in a near place is partly hidden by the one in the front place of its column.
NEAR = {
    "near left": "front left",
    "near middle left": "front middle",
    "near middle right": "front middle",
    "near right": "front right",
}
BACK = {place: place.replace("front", "back") for place in FRONT}
# Two near places over a metre apart, so that their objects don't hide each other.
NEAR_PAIRS = (("near left", "near middle right"), ("near left", "near right"), ("near middle left", "near right"))


@dataclass(frozen=True)
class Layout:
    """The places in which a scene's objects may stand, and the combinations of them that a scene of n objects may
    use."""

    name: str
    singles: tuple[str, ...]
    """The places in which an object may stand alone: all places of the layout."""
    hides: bool
    """Whether objects may hide parts of others."""

    def choices(self, n: int) -> tuple[tuple[str, ...], ...]:
        """Return every choice of places for n objects, 1 to 6. The places of a choice are sorted by name, as a scene's
        objects are."""
        if not 1 <= n <= MOST:
            raise UserError(f"layout {self.name} has places for 1 to {MOST} objects, not for {n}")
        return _choices(self.name, self.singles, n)

    def places(self, n: int, random: "np.random.Generator") -> tuple[str, ...]:
        """Draw places for n objects; every choice is equally likely."""
        choices = self.choices(n)
        return choices[int(random.integers(len(choices)))]


@cache
def _choices(name: str, places: tuple[str, ...], n: int) -> tuple[tuple[str, ...], ...]:
    found = combinations(places, n) if name != "overlap" or n == 1 else overlapping(n)
    return tuple(sorted(tuple(sorted(choice)) for choice in found))


def overlapping(n: int) -> Iterator[tuple[str, ...]]:
    """Yield the places of two to six objects, of which some stand in front of others.

    Two: a near place and the front place of its column. Three: also another front place. Four: two near places and
    their front places. Five: also the third front place. Six: also the place behind that.
    """
    if n <= 3:
        for near, front in NEAR.items():
            others = [place for place in FRONT if place != front]
            yield from ((near, front, *rest) for rest in combinations(others, n - 2))
    else:
        for pair in NEAR_PAIRS:
            fronts = [NEAR[near] for near in pair]
            (third,) = (place for place in FRONT if place not in fronts)
            yield (*pair, *fronts, third, BACK[third])[:n]


def _in_rows(*rows: str) -> tuple[str, ...]:
    return tuple(place for place, where in LAYOUT_PLACES.items() if where.row in rows)


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("apart", _in_rows("front", "high"), hides=False),
        Layout("rows", _in_rows("front", "back"), hides=True),
        Layout("overlap", _in_rows("front", "near", "back"), hides=True),
    )
}


def layout_of(scene: Scene) -> str | None:
    """Return the name of the first layout that may combine the scene's places; None if no layout may."""
    places = tuple(obj.slot for obj in scene.objects)
    if not all(place in LAYOUT_PLACES for place in places) or len(places) > MOST:
        return None
    return next((name for name, layout in LAYOUTS.items() if places in layout.choices(len(places))), None)


class Relation(NamedTuple):
    """A stated relation of two objects of a scene: of "left/right", `first` is the left one."""

    name: str
    """A name in `RELATIONS`, or "front/behind"."""
    first: int
    """Index in `Scene.objects`."""
    second: int


def relations_of(scene: Scene) -> tuple[Relation, ...]:
    """Return the stated relations of a scene: one for each two objects that have one, in the order of their indices.

    Any two objects of a layout have exactly one. A pair in other slots has that of `Scene.relation`.
    """
    found = []
    for (i, one), (j, other) in combinations(enumerate(obj.slot for obj in scene.objects), 2):
        if name := stated(one, other):
            found.append(Relation(name, i, j))
        elif name := stated(other, one):
            found.append(Relation(name, j, i))
    return tuple(found)


@cache
def stated(first: str, second: str) -> str | None:
    """Return the relation in which an object in slot `first` is stated to be the left, upper or foremost one, and an
    object in `second` the other. None if no relation is stated in this order."""
    if first not in LAYOUT_PLACES or second not in LAYOUT_PLACES:
        return RELATIONS.get((place_of(first), place_of(second)))
    (column, row), (other_column, other_row) = LAYOUT_PLACES[first], LAYOUT_PLACES[second]
    if abs(column - other_column) >= BESIDE:
        return "left/right" if column < other_column else None
    if row == "high" or other_row == "high":
        return "above/under" if (row, other_row) == ("high", "front") else None
    depth = ("front", "near", "back")
    return FRONT_AND_BEHIND if depth.index(row) < depth.index(other_row) else None


@cache
def holds(name: str, first: str, second: str) -> bool | None:
    """Whether relation `name` is true of two slots if `first` is taken as the left, upper or foremost one.

    True if it is stated. False if its converse is stated. In multi-object scenes also False if another relation is
    stated and the slots are level in `name` (in the same column for left/right, else in the same row). Otherwise None:
    no caption, true or false, may say it."""
    if stated(first, second) == name:
        return True
    if stated(second, first) == name:
        return False
    if (
        first not in LAYOUT_PLACES
        or second not in LAYOUT_PLACES
        or not (stated(first, second) or stated(second, first))
    ):
        return None
    axis = "column" if name == "left/right" else "row"
    return False if getattr(LAYOUT_PLACES[first], axis) == getattr(LAYOUT_PLACES[second], axis) else None
