"""The content of one image, as an immutable value with a canonical key."""

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.slots import RELATIONS, place_of

MOST_THINGS = 8  # in one scene


class Thing(NamedTuple):
    """An animal with a texture in a slot, and its size (see `menagerie.envs.slots`), "" in a world without sizes."""

    animal: str
    texture: str
    slot: str
    size: str = ""


SLOT_OF = attrgetter("slot")


@dataclass(frozen=True, order=True)
class Scene:
    """A background, the things in it in slot order, and the number of the view.

    Equal scenes of one world give the same image, byte for byte. Two scenes that differ only in the order of `things`
    are the same scene, because the constructor sorts by slot name.
    """

    background: str
    things: tuple[Thing, ...]
    view: int = 0

    def __post_init__(self) -> None:
        # Millions are made: what is a Thing stays one.
        given = [thing if type(thing) is Thing else Thing(*thing) for thing in self.things]
        things = tuple(sorted(given, key=SLOT_OF))
        slots = list(map(SLOT_OF, things))
        if not things or len(set(map(place_of, slots))) != len(slots):
            raise UserError(f"a scene needs at least one thing and a slot for each, got slots {slots}")
        if len(things) > MOST_THINGS:
            raise UserError(f"a scene holds at most {MOST_THINGS} things, got {len(things)}")
        object.__setattr__(self, "things", things)

    @property
    def relation(self) -> str | None:
        """The relation of the slots ("left/right"), whichever way things face; None if they have none, as for a single
        thing."""
        return RELATIONS.get(tuple(place_of(thing.slot) for thing in self.things))

    @property
    def key(self) -> str:
        """Canonical text of the scene: the same key if and only if the same scene."""
        things = (f"{thing.size} {thing.texture} {thing.animal}@{thing.slot}".lstrip() for thing in self.things)
        return f"{'+'.join(things)}|{self.background}|{self.view}"
