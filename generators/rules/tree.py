"""The expression tree of a parsed rule (see `menagerie.generators.rules.rule`), and its evaluation on a scene."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import RELATIONS, place_of

Value = str | int | tuple[str, ...]

THING_FIELDS = Thing._fields
# Reads a field of a scene, None if the scene has no such value; `turned`: `first` is the thing in the second slot.
SCENE_FIELDS: dict[str, Callable[[Scene, bool], Value | None]] = {
    "background": lambda scene, turned: scene.background,
    "relation": lambda scene, turned: scene.relation or "none",
    "count": lambda scene, turned: len(scene.things),
    "view": lambda scene, turned: scene.view,
    "pair": lambda scene, turned: pair_of(scene),
    "first": lambda scene, turned: scene.things[int(turned)].animal if scene.relation else None,
    "second": lambda scene, turned: scene.things[int(not turned)].animal if scene.relation else None,
}

# Words for `relation` in rules -> the relation, and whether the word names its second slot.
RELATION_WORDS: dict[str, tuple[str, bool]] = {
    word: (relation, bool(slot)) for relation in RELATIONS.values() for slot, word in enumerate(relation.split("/"))
} | {"none": ("none", False)}

# Compares a scene's value with the values in the rule.
OPERATORS: dict[str, Callable[[Value, tuple[Value, ...]], bool]] = {
    "=": lambda value, given: value in given,
    "!=": lambda value, given: value not in given,
    "<": lambda value, given: value < given[0],
    "<=": lambda value, given: value <= given[0],
    ">": lambda value, given: value > given[0],
    ">=": lambda value, given: value >= given[0],
}


def pair_of(scene: Scene) -> tuple[str, ...] | None:
    """The animals of a scene of two things, sorted."""
    return tuple(sorted(thing.animal for thing in scene.things)) if len(scene.things) == 2 else None


@dataclass(frozen=True)
class Term:
    """A field of a scene or of a thing; with an `index`, of the scene's thing with that number."""

    field: str
    index: int | None = None

    def value(self, scene: Scene, thing: Thing, turned: bool) -> Value | None:
        """Return the value of the field: of the scene, of the thing with the index, or without an index of `thing`.
        None if the scene has no such value."""
        if self.field in SCENE_FIELDS:
            return SCENE_FIELDS[self.field](scene, turned)
        if self.index is not None:
            if self.index >= len(scene.things):
                return None
            thing = scene.things[self.index]
        return place_of(thing.slot) if self.field == "slot" else getattr(thing, self.field)


@dataclass(frozen=True)
class Comparison:
    """A comparison of a term with a set of values, or with another term."""

    left: Term
    operator: str
    right: Term | tuple[Value, ...]
    directions: tuple[tuple[str, bool], ...] = ()
    """The relations that `relation=...` names, as in `RELATION_WORDS`: they determine which thing is `first`."""

    def holds(self, scene: Scene, thing: Thing, turned: bool) -> bool:
        """Whether the comparison is true of `thing`; a missing value on either side makes it false."""
        value = self.left.value(scene, thing, turned)
        given = (self.right.value(scene, thing, turned),) if isinstance(self.right, Term) else self.right
        return value is not None and None not in given and OPERATORS[self.operator](value, given)


class Expression(ABC):
    """A part of a rule that is true or false of a scene by itself."""

    @abstractmethod
    def matches(self, scene: Scene) -> bool:
        """Whether the expression is true of `scene`."""


@dataclass(frozen=True)
class Conjunction(Expression):
    """Comparisons that must all be true of the same thing, and groups that are evaluated independently."""

    comparisons: tuple[Comparison, ...]
    groups: tuple[Expression, ...] = ()
    turned: frozenset[str] = frozenset()
    """The relations in which `first` is the thing in the second slot."""

    def matches(self, scene: Scene) -> bool:
        """Return whether all groups are true, and all comparisons are true of one and the same thing."""
        turned = scene.relation in self.turned
        return all(group.matches(scene) for group in self.groups) and any(
            all(comparison.holds(scene, thing, turned) for comparison in self.comparisons) for thing in scene.things
        )


@dataclass(frozen=True)
class Not(Expression):
    """An expression that is true if `part` is false."""

    part: Expression

    def matches(self, scene: Scene) -> bool:
        return not self.part.matches(scene)


@dataclass(frozen=True)
class AnyOf(Expression):
    """An expression that is true if at least one of `parts` is."""

    parts: tuple[Expression, ...]

    def matches(self, scene: Scene) -> bool:
        return any(part.matches(scene) for part in self.parts)
