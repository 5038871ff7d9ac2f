"""Hold-out rules: one line of text that is true or false of a scene.

A rule compares fields of a scene and joins the comparisons by `&` (or `and`), `|` (`or`), `!` (`not`)
and parentheses; `not` binds closest, then `and`, then `or`:

    texture=red & animal=cat                        a red cat, beside anything
    (texture=red) & (animal=cat)                    something red, and a cat of any texture
    pair={cat, lion}                                a cat and a lion, and nothing else
    animal=felines, pair={felines, bear}            the same of any animal of a set
    relation=above & second=orca                    something above an orca
    background=city                                 any scene in the city
    count=2 & texture[0]=texture[1]                 two objects of one texture
    not (animal=cat or background={city, desert})   no cat, and in neither of these

Fields
    animal, texture, slot, size   of an object; with an index, as in animal[0], of that object in the scene's
                                  order, which is that of the slots' names ("left" before "right"); size in
                                  worlds that have sizes
    background, count, view       of the scene
    relation                      of any two objects of the scene: left, right, above, under, front, behind; none in
                                  scenes without related objects: `above` and `under` are true of the same scenes,
                                  but turn round which object is `first`
    first, second                 the animal that `relation=` in the same conjunction puts first (with
                                  `relation=under` the lower one), else the first of the relation
    pair                          the two animals of a scene of two objects, in any order

Values are names of the world, quoted where they contain a keyword; sets of animals, which mean any of
their animals; a set in braces, which means any of its values; whole numbers for count and view, and only
count knows <, <=, > and >=; or an indexed field, as in texture=texture[1].

Which object: in one chain of &, all comparisons of animal, texture, slot and size without an index refer to
one object, and all of relation, first and second to one relation of two objects. Parentheses, another side of
`or`, and `not` start a chain of their own, also for `first`. Hence `not animal=cat` is true of scenes without a
cat, `animal!=cat` of scenes with another animal than a cat. A comparison with something that a scene lacks (an
index beyond its objects, the `first` of a single object, the `pair` of three) is false, with != too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, RelatedObjects, Scene
from menagerie.envs.slots import place_of
from menagerie.envs.world import AnimalSets

Value = str | int | tuple[str, ...]

OBJECT_FIELDS = Object._fields
# Reads a field of a scene with two of its objects that are related, if any; None if the scene has no such value.
SCENE_FIELDS: dict[str, Callable[[Scene, RelatedObjects | None], Value | None]] = {
    "background": lambda scene, related: scene.background,
    "relation": lambda scene, related: related.name if related else "none",
    "count": lambda scene, related: len(scene.objects),
    "view": lambda scene, related: scene.view,
    "pair": lambda scene, related: tuple(sorted(t.animal for t in scene.objects)) if len(scene.objects) == 2 else None,
    "first": lambda scene, related: scene.objects[related.first].animal if related else None,
    "second": lambda scene, related: scene.objects[related.second].animal if related else None,
}
OF_RELATIONS = {"relation", "first", "second"}


def relation_words() -> dict[str, tuple[str, bool]]:
    """The words for `relation` in rules, each with the relation, and whether it is the word of the second object."""
    words = {word: (name, bool(second)) for name in RELATIONS for second, word in enumerate(name.split("/"))}
    return words | {"none": ("none", False)}


# Compares a scene's value with the values in the rule.
OPERATORS: dict[str, Callable[[Value, tuple[Value, ...]], bool]] = {
    "=": lambda value, given: value in given,
    "!=": lambda value, given: value not in given,
    "<": lambda value, given: value < given[0],
    "<=": lambda value, given: value <= given[0],
    ">": lambda value, given: value > given[0],
    ">=": lambda value, given: value >= given[0],
}


@dataclass(frozen=True)
class Term:
    """A field of a scene or of an object; with an `index`, of the scene's object with that number."""

    field: str
    index: int | None = None

    def value(self, scene: Scene, obj: Object, related: RelatedObjects | None) -> Value | None:
        """Return the value of the field: of the scene, of the object with the index, or without an index of `obj`.
        None if the scene has no such value."""
        if self.field in SCENE_FIELDS:
            return SCENE_FIELDS[self.field](scene, related)
        if self.index is not None:
            if self.index >= len(scene.objects):
                return None
            obj = scene.objects[self.index]
        return place_of(obj.slot) if self.field == "slot" else getattr(obj, self.field)


@dataclass(frozen=True)
class Comparison:
    """A comparison of a term with a set of values, or with another term."""

    left: Term
    operator: str
    right: Term | tuple[Value, ...]
    directions: tuple[tuple[str, bool], ...] = ()
    """The relations that `relation=...` names, as in `relation_words`: they determine which object is `first`."""

    def holds(self, scene: Scene, obj: Object, related: RelatedObjects | None) -> bool:
        """Whether the comparison is true of `obj` and two related objects; a missing value on either side makes it
        false."""
        value = self.left.value(scene, obj, related)
        given = (self.right.value(scene, obj, related),) if isinstance(self.right, Term) else self.right
        return value is not None and None not in given and OPERATORS[self.operator](value, given)


@dataclass(frozen=True)
class Conjunction:
    """Comparisons that must all be true of the same object, and groups that are evaluated independently."""

    comparisons: tuple[Comparison, ...]
    groups: tuple["AnyOf", ...] = ()
    turned: frozenset[str] = frozenset()
    """The relations in which `first` is the object in the second slot."""

    @cached_property
    def of_relations(self) -> bool:
        """Whether a comparison is of a relation or of one of its objects."""
        return any(comparison.left.field in OF_RELATIONS for comparison in self.comparisons)

    def matches(self, scene: Scene) -> bool:
        """Return whether all groups are true, and all comparisons are true of one and the same object, and of one and
        the same relation."""
        related = [self.turn(its) for its in scene.relations] if self.of_relations else []
        return all(group.matches(scene) for group in self.groups) and any(
            all(comparison.holds(scene, obj, its) for comparison in self.comparisons)
            for its in related or (None,)
            for obj in scene.objects
        )

    def turn(self, related: RelatedObjects) -> RelatedObjects:
        """Return a relation with the object that this conjunction calls the first as its first."""
        name, first, second = related
        return RelatedObjects(name, second, first) if name in self.turned else related


@dataclass(frozen=True)
class AnyOf:
    """True if at least one of `parts` is; if `negated`, true if none is."""

    parts: tuple[Conjunction, ...]
    negated: bool = False

    def matches(self, scene: Scene) -> bool:
        """Whether it is true of `scene`."""
        return any(part.matches(scene) for part in self.parts) != self.negated


@dataclass(frozen=True)
class Rule:
    """A parsed rule, with its text."""

    text: str
    expression: AnyOf = field(repr=False)
    sets: AnimalSets = ()
    """Sets that the rule names, with their animals."""

    def matches(self, scene: Scene) -> bool:
        """Whether the rule is true of `scene`."""
        return self.expression.matches(scene)
