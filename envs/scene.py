"""The content of one image, as an immutable value with a canonical key."""

from dataclasses import dataclass
from itertools import permutations
from operator import attrgetter
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.relations import relation_from
from menagerie.envs.slots import place_of

MOST_OBJECTS = 8  # in one scene


class Object(NamedTuple):
    """An animal with a texture in a slot, and its size (see `menagerie.envs.slots`), "" in a world without sizes."""

    animal: str
    texture: str
    slot: str
    size: str = ""


class RelatedObjects(NamedTuple):
    """Two objects of a scene in a relation: of "left/right", `first` is the left one."""

    name: str
    """A name in `menagerie.envs.relations.RELATIONS`."""
    first: int
    """Index in `Scene.objects`."""
    second: int


SLOT_OF = attrgetter("slot")


@dataclass(frozen=True, order=True)
class Scene:
    """A background, the objects in it in slot order, and the number of the view.

    Equal scenes of one world give the same image, byte for byte. Two scenes that differ only in the order of `objects`
    are the same scene, because the constructor sorts by slot name.
    """

    background: str
    objects: tuple[Object, ...]
    view: int = 0

    def __post_init__(self) -> None:
        # Millions are made: what is an Object stays one.
        given = [obj if type(obj) is Object else Object(*obj) for obj in self.objects]
        objects = tuple(sorted(given, key=SLOT_OF))
        slots = list(map(SLOT_OF, objects))
        if not objects or len(set(map(place_of, slots))) != len(slots):
            raise UserError(f"a scene needs at least one object and a slot for each, got slots {slots}")
        if len(objects) > MOST_OBJECTS:
            raise UserError(f"a scene holds at most {MOST_OBJECTS} objects, got {len(objects)}")
        object.__setattr__(self, "objects", objects)

    @property
    def relations(self) -> tuple[RelatedObjects, ...]:
        """The relations of objects: any two in the places of a layout have exactly one; of others, the pairs in
        `RELATIONS` have theirs, whichever way objects face."""
        places = enumerate(map(SLOT_OF, self.objects))
        found = ((relation_from(one, other), i, j) for (i, one), (j, other) in permutations(places, 2))
        return tuple(sorted((RelatedObjects(*its) for its in found if its[0]), key=lambda its: sorted(its[1:])))

    @property
    def relation(self) -> str | None:
        """The relation of a scene's two objects ("left/right"); None if they have none, and for one object or
        several."""
        if len(self.objects) != 2:
            return None
        one, other = map(SLOT_OF, self.objects)
        return relation_from(one, other) or relation_from(other, one) or None

    @property
    def key(self) -> str:
        """Canonical text of the scene: the same key if and only if the same scene."""
        objects = (f"{obj.size} {obj.texture} {obj.animal}@{obj.slot}".lstrip() for obj in self.objects)
        return f"{'+'.join(objects)}|{self.background}|{self.view}"
