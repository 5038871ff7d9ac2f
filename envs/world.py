"""Closed vocabularies: the animals, textures and backgrounds of a world, and names for sets of its animals."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.relations import pair_slots
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SIZES

NAME = re.compile(r"[a-z]+( [a-z]+)*")  # of an animal, a texture, a background or a set
# Sets by name with their animals ("felines"), hashable because worlds are.
AnimalSets = tuple[tuple[str, tuple[str, ...]], ...]


class ObjectRow(NamedTuple):
    """The columns in which a world's objects stand (`menagerie.envs.render.row`), if it has no stage."""

    columns: int = 10
    places: tuple[int, ...] = tuple(range(10))
    """The columns that objects may take; two objects stand in any two of them."""
    in_turn: bool = False
    """Whether the view alone decides the columns: `views` views show as many layouts until all had their turn."""


@dataclass(frozen=True)
class World:
    """A closed vocabulary. Names are plain words, as captions use them ("giant tortoise")."""

    name: str
    animals: tuple[str, ...]
    textures: tuple[str, ...]
    backgrounds: tuple[str, ...]
    sizes: tuple[str, ...] = ()
    """Sizes in which all animals come (see `menagerie.envs.slots`); if empty, objects have no size."""
    own: str = ""
    """Hashes of the ingredients that world files define."""
    source: str = field(default="", compare=False)
    """The TOML file that the world was read from. Worlds are compared without it: a copy of the file makes the same
    world."""
    sets: AnimalSets = ()
    """Sets of animals that hold-out rules may name."""
    cutouts: tuple[tuple[str, str], ...] = ()
    """The animals that are cut-out photographs, each with a hash of the world file's entry; `own` has these hashes."""

    replaced: tuple[tuple[str, str], ...] = ()
    """The world's own textures that have a built-in name, each with the name by which it is drawn; `own` contains their
    hashes, too."""
    row: ObjectRow | None = None
    """The row in which objects are drawn as patterns; None if they are bodies on a stage."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Unordered pairs of distinct animals, in the world's order."""
        return list(combinations(self.animals, 2))

    def singles(self, views: Iterable[int] = (0,), slots: Iterable[str] = ("center",)) -> Iterator[Scene]:
        """Yield every conjunction of texture, animal and background as a scene of one object, in each given view and
        slot and each size of the world."""
        conjunctions = product(views, slots, self.backgrounds, self.animals, self.textures)
        for view, slot, background, animal, texture in conjunctions:
            yield from self.in_sizes(Scene(background, (Object(animal, texture, slot),), view))

    def factorial(self, views: Iterable[int] = (0,)) -> Iterator[Scene]:
        """Yield every scene of one object, and of two different animals in the slots of every pair (`pair_slots`):
        61 200 a view for the paper's world.

        In a world with sizes each object comes in every size.
        """
        views = tuple(views)
        yield from self.singles(views)
        objects = list(product(self.animals, self.textures))
        for view, background, slots in product(views, self.backgrounds, pair_slots()):
            for (animal, texture), (other, other_texture) in product(objects, objects):
                if animal != other:
                    both = Object(animal, texture, slots[0]), Object(other, other_texture, slots[1])
                    yield from self.in_sizes(Scene(background, both, view))

    def in_sizes(self, scene: Scene) -> Iterator[Scene]:
        """Yield `scene` in every combination of sizes; animals of one kind share a size. Without sizes, yield the scene
        itself."""
        if not self.sizes:
            yield scene
            return
        animals = sorted({obj.animal for obj in scene.objects})
        for sizes in product(self.sizes, repeat=len(animals)):
            size_of = dict(zip(animals, sizes, strict=True))
            yield replace(scene, objects=tuple(obj._replace(size=size_of[obj.animal]) for obj in scene.objects))

    def drawn(self, texture: str) -> str:
        """Return the name by which a texture of this world is drawn."""
        return dict(self.replaced).get(texture, texture)

    def as_drawn(self, scene: Scene) -> Scene:
        """Return the scene with the names by which its textures are drawn, for renderers that don't know the world."""
        return replace(scene, objects=tuple(obj._replace(texture=self.drawn(obj.texture)) for obj in scene.objects))

    def check(self, scene: Scene) -> Scene:
        """Return `scene` if all its names are in this world; else raise, with the nearest name."""
        choose("background", scene.background, self.backgrounds)
        for obj in scene.objects:
            choose("animal", obj.animal, self.animals)
            choose("texture", obj.texture, self.textures)
            if obj.size and not self.sizes:
                raise UserError(f"world {self.name!r} has no sizes, but {scene.key} has; give it sizes in a world file")
            choose("size", obj.size, self.sizes or ("",))
        return scene


def validate_sets(
    sets: Mapping[str, Sequence[str]], animals: Sequence[str], error: Callable[[str], UserError] = UserError
) -> AnimalSets:
    """Return the sets in hashable form; raises if a set or its name is invalid, or names an animal not among
    `animals`. `error` makes the exception."""
    for name, members in sets.items():
        if not NAME.fullmatch(name):
            raise error(f"set {name!r}: a name is lower-case words, as in rules")
        if name in animals:
            raise error(f"set {name!r} is named like an animal of the world; rename the set")
        if not members:
            raise error(f"set {name!r} is empty; name its animals, or leave it out")
        try:
            for member in members:
                choose("animal", member, animals)
        except UserError as problem:
            raise error(f"set {name!r}: {problem}") from problem
        if len(set(members)) != len(members):
            raise error(f"set {name!r} names an animal twice: {', '.join(members)}")
    return tuple((name, tuple(members)) for name, members in sets.items())


def restrict_sets(sets: AnimalSets, animals: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the sets restricted to `animals`, without sets that have no members left or are named like one of
    `animals`."""
    known = set(animals)
    kept = {name: tuple(member for member in members if member in known) for name, members in sets}
    return {name: members for name, members in kept.items() if members and name not in known}


ANIMALS = (
    *("goldfish", "caribou", "elephant", "camel", "penguin", "zebra", "bear"),
    *("crocodile", "armadillo", "cat", "gecko", "crow", "giant tortoise"),
    *("rhinoceros", "dolphin", "lion", "orca", "pig", "rabbit", "squirrel"),
)
TEXTURES = ("red", "white", "asphalt", "grass")
BACKGROUNDS = ("desert", "arena", "ocean floor", "city", "circus")
# Told apart at 64 pixels in 97 of 100 pictures of one object, in whatever place of a layout it stands.
TWELVE_TEXTURES = (*TEXTURES, "blue", "yellow", "purple", "pink", "orange", "turquoise", "wood", "dotted")
COLORS = ("red", "white", "blue", "pink", "orange", "turquoise")
# Two attributes in one phrase: "a banded red cat" is a red cat and a banded cat.
PATTERNS = tuple(f"{pattern} {color}" for pattern in ("plain", "banded") for color in COLORS)
STRIPED = ("zebra", "armadillo")  # animals on which no band can be seen
# The paper's (OC-CLIP, appendix A.5; PUG).
PUG = World("pug", ANIMALS, TEXTURES, BACKGROUNDS)
# For tests and smoke runs.
TINY = World("tiny", ("elephant", "penguin", "crocodile", "rabbit"), ("red", "white", "grass"), ("desert", "city"))
# For studies of many training runs.
EIGHT = World(
    "eight",
    ("goldfish", "elephant", "camel", "penguin", "crocodile", "giant tortoise", "rabbit", "crow"),
    ("red", "white", "grass"),
    ("desert", "city", "circus"),
)
# The same with more pairs: 20 of its 66 may be a test.
TWELVE = replace(EIGHT, name="twelve", animals=(*EIGHT.animals, "cat", "lion", "orca", "pig"))
# Names alone: one texture and one background say nothing.
PLAIN = replace(PUG, name="pug-plain", textures=TEXTURES[:1], backgrounds=BACKGROUNDS[:1])
TWO_PLACES = ObjectRow(places=(2, 7))

WORLDS: dict[str, World] = {
    "pug": PUG,
    "tiny": TINY,
    "eight": EIGHT,
    "twelve": TWELVE,
    # With a second attribute.
    "pug-sizes": replace(PUG, name="pug-sizes", sizes=tuple(SIZES)),
    "tiny-sizes": replace(TINY, name="tiny-sizes", sizes=tuple(SIZES)),
    # For scenes of many objects.
    "pug-textures": replace(PUG, name="pug-textures", textures=TWELVE_TEXTURES),
    "pug-patterns": replace(
        PUG,
        name="pug-patterns",
        animals=tuple(animal for animal in ANIMALS if animal not in STRIPED),
        textures=PATTERNS,
    ),
    "eight-textures": replace(EIGHT, name="eight-textures", textures=TWELVE_TEXTURES[:8]),
    # With as many textures as animals, for grids of both.
    "four-textures": replace(EIGHT, name="four-textures", animals=EIGHT.animals[:4], textures=TWELVE_TEXTURES[:4]),
    "twelve-textures": replace(TWELVE, name="twelve-textures", textures=TWELVE_TEXTURES),
    # On one background, for studies of hundreds of training runs.
    "twelve-plain": replace(TWELVE, name="twelve-plain", textures=TWELVE_TEXTURES, backgrounds=EIGHT.backgrounds[:1]),
    # Between one-dimensional images and ours: names alone, in a row, with more and more of what pug has.
    "row-5": replace(PLAIN, name="row-5", animals=ANIMALS[:5], row=ObjectRow()),
    "row-10": replace(PLAIN, name="row-10", animals=ANIMALS[:10], row=ObjectRow()),
    "row-15": replace(PLAIN, name="row-15", animals=ANIMALS[:15], row=ObjectRow()),
    "row": replace(PLAIN, name="row", row=ObjectRow()),
    "row-two-places": replace(PLAIN, name="row-two-places", row=TWO_PLACES),
    "row-15-textures": replace(PUG, name="row-15-textures", animals=ANIMALS[:15], row=ObjectRow()),
    "pug-plain": PLAIN,
    # With layouts in turn, so that training's views are its layouts.
    **{
        f"row-{n}-in-turn": replace(PLAIN, name=f"row-{n}-in-turn", animals=ANIMALS[:n], row=ObjectRow(in_turn=True))
        for n in (6, 10, 20)
    },
}
