"""Layouts: which places scenes of two to six objects combine."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS

if TYPE_CHECKING:
    import numpy as np

MOST = 6  # objects in a layout
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
        return combined_places(self, n)

    def places(self, n: int, random: "np.random.Generator") -> tuple[str, ...]:
        """Draw places for n objects; every choice is equally likely."""
        choices = self.choices(n)
        return choices[int(random.integers(len(choices)))]


@cache
def combined_places(layout: Layout, n: int) -> tuple[tuple[str, ...], ...]:
    found = overlapping_places(n) if layout.name == "overlap" and n > 1 else combinations(layout.singles, n)
    return tuple(sorted(tuple(sorted(choice)) for choice in found))


def overlapping_places(n: int) -> Iterator[tuple[str, ...]]:
    """Yield each choice of places for two to six objects of which some stand in front of others.

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


def slots_in(*rows: str) -> tuple[str, ...]:
    """The places in some rows."""
    return tuple(name for name, slot in SLOTS.items() if slot.row in rows)


LAYOUTS: dict[str, Layout] = {
    "apart": Layout("apart", slots_in("front", "high"), hides=False),
    "rows": Layout("rows", slots_in("front", "back"), hides=True),
    "overlap": Layout("overlap", slots_in("front", "near", "back"), hides=True),
}


def layout_of(scene: Scene) -> Layout | None:
    """Return the first layout that may combine the scene's places; None if no layout may."""
    places = tuple(obj.slot for obj in scene.objects)
    found = (layout for layout in LAYOUTS.values() if len(places) <= MOST and places in layout.choices(len(places)))
    return next(found, None)
