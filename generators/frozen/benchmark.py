"""Frozen benchmarks: the tests of a recipe under a name with a version, and digests of all that is tested.

Each is a file of `generators/recipes/frozen/`, whose name ends with the version: the version, the resolution, all
fields of the recipe, and the digests.
Nothing needs to be downloaded: every machine renders the same bytes, and the digests prove it. To add one, add a file
with empty digests; evaluation on it prints those that it finds. A file never changes once a result on it is published:
a changed benchmark gets another version, and so another name.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import digest
from menagerie.envs.core.reading import read_toml
from menagerie.envs.scene import Scene
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import FROZEN, read_recipe


class Digests(NamedTuple):
    """Digests of what a benchmark tests (`menagerie.generators.frozen.digests`)."""

    scenes: str = ""
    """The records of every task: their scenes, and how many texts they are tested with."""
    texts: str = ""
    """True and false captions, with their scene graphs."""
    pixels: str = ""
    """The images of records and of their counterfactuals."""


@dataclass(frozen=True)
class Frozen:
    """A frozen benchmark."""

    name: str
    version: int
    resolution: int
    recipe: SplitRecipe
    parts: Digests

    @property
    def digest(self) -> str:
        """A digest of the whole benchmark; empty while a part has none."""
        named = {"name": self.name, "resolution": self.resolution, **self.parts._asdict()}
        return digest(named) if all(self.parts) else ""

    def tested(self) -> dict[str, list[Scene]]:
        """The scenes of all tests, without the counterfactuals; train and validation are empty."""
        tests = self.recipe.all_tests
        return {name: scenes if name in tests else [] for name, scenes in self.recipe.subsets().items()}


@cache
def load_frozen(name: str) -> Frozen:
    """The frozen benchmark called `name`. Raises for an unknown name."""
    entry = read_toml(FROZEN[choose("frozen benchmark", name, FROZEN)])
    return Frozen(name, entry["version"], entry["resolution"], read_recipe(name), Digests(**entry["digests"]))
