"""The splits of a command line: files, or recipes that are rendered first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.pixels import open_split
from menagerie.generators.storage.split_file import Split, content_identity
from menagerie.studies.runs.split_file import make_splits, tests_of


@dataclass(frozen=True)
class TestedSplit:
    """A split that was opened."""

    label: str
    split: Split

    @property
    def identity(self) -> str:
        """Hash of its scenes and texts and of the store that shows them; the same for a packed file."""
        return content_identity(self.split)

    def tests(self) -> Mapping[str, SplitTests]:
        """A benchmark of each subset but train."""
        names = (*tests_of(self.split), "validation")
        return {name: SplitTests(SplitDataset(self.split, name, preload=False)) for name in names}


def splits_of(names: Sequence[str], world: str, prepare: Callable[[SplitRecipe], Path]) -> list[TestedSplit]:
    """All splits, recipes rendered by `prepare`; every name is checked before anything is rendered."""
    recipes = recipes_of(names, world)
    labels = [Path(name).stem for name in names]
    opened = []
    for name, label in zip(names, labels, strict=True):
        unique = label if labels.count(label) == 1 else name
        opened.append(TestedSplit(unique, open_split(prepare(recipes[name]) if name in recipes else Path(name))))
    if len({split.label for split in opened}) < len(opened):
        raise UserError(f"one of --splits is given twice: {' '.join(names)}")
    return opened


def recipes_of(names: Sequence[str], world: str) -> dict[str, SplitRecipe]:
    """The recipes among splits by name; raises for a name of nothing, and for fractions that can't be had."""
    recipes = {name: recipe_of(name, world) for name in names if not is_split_file(name)}
    for recipe in recipes.values():
        recipe.counts()
    if missing := next((name for name in names if name not in recipes and not Path(name).is_file()), None):
        raise UserError(f"--splits {missing}: there is no such file; make it with 'menagerie make'")
    return recipes


def is_split_file(name: str) -> bool:
    """Whether a name is that of a file, there or not, rather than of a recipe."""
    return Path(name).suffix in (".h5", ".hdf5") or (Path(name).is_file() and not name.endswith(".toml"))


def recipe_of(name: str, world: str) -> SplitRecipe:
    """A recipe by name or from a TOML file, in the world that it says or in another."""
    recipe = read_recipe(name)
    return replace(recipe, world=world) if world else recipe


def render(recipe: SplitRecipe, root: Path, resolution: int, workers: int) -> Path:
    """Render what the store lacks of a recipe's scenes, and write its split file."""
    store = ImageStore(root, load_world(recipe.world), resolution)
    return make_splits(store, [recipe], workers)[recipe]
