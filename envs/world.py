"""Closed vocabularies: which animals, textures and backgrounds a world is made of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

from envs.errors import choose
from envs.scene import Scene, Thing


@dataclass(frozen=True)
class World:
    """A closed vocabulary. Names are plain words, as captions use them ("giant tortoise")."""

    name: str
    animals: tuple[str, ...]
    textures: tuple[str, ...]
    backgrounds: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Unordered pairs of distinct animals, in the world's order."""
        return list(combinations(self.animals, 2))

    def singles(self, views: Iterable[int] = (0,)) -> Iterator[Scene]:
        """Every texture-animal-background conjunction as a scene of one thing."""
        for view, background, animal, texture in product(views, self.backgrounds, self.animals, self.textures):
            yield Scene(background, (Thing(animal, texture, "center"),), view)

    def check(self, scene: Scene) -> Scene:
        """Return `scene` if this world has all it names; else raise with the nearest name."""
        choose("background", scene.background, self.backgrounds)
        for thing in scene.things:
            choose("animal", thing.animal, self.animals)
            choose("texture", thing.texture, self.textures)
        return scene


TEXTURES = ("red", "white", "asphalt", "grass")
BACKGROUNDS = ("desert", "arena", "ocean floor", "city", "circus")

WORLDS: dict[str, World] = {
    # The paper's world has 20 animals; these six are the first.
    "pug": World(
        "pug",
        ("goldfish", "elephant", "penguin", "crocodile", "giant tortoise", "rabbit"),
        TEXTURES,
        BACKGROUNDS,
    ),
    # For tests and smoke runs.
    "tiny": World(
        "tiny", ("elephant", "penguin", "crocodile", "rabbit"), ("red", "white", "grass"), ("desert", "city")
    ),
}


def load_world(name: str) -> World:
    """The world called `name`; an unknown name raises with the nearest one."""
    return WORLDS[choose("world", name, WORLDS)]
