"""The tests of splits that aren't rendered yet, to count what models would be scored on."""

from collections.abc import Mapping
from pathlib import Path

from menagerie.envs.core.identity import plain
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.frozen.benchmark import frozen
from menagerie.generators.splits.recipe import SplitRecipe, recorded_fields
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import Split, recipe_version
from menagerie.generators.vocabulary import Vocabulary


def scenes_of(name: str, recipe: SplitRecipe) -> dict[str, list[Scene]]:
    """The scenes of each subset of a split, those that hide too much among them; a frozen benchmark trains on none."""
    return frozen(name).tested() if name in FROZEN else recipe.subsets()


def planned_split(recipe: SplitRecipe, planned: Mapping[str, list[Scene]]) -> Split:
    """The split of planned subsets but train, without pixels."""
    tested = {name: scenes for name, scenes in planned.items() if name != "train"}
    vocabulary, written = Vocabulary.of(load_world(recipe.world)), plain(recorded_fields(recipe))
    tables = {name: make_columns(name, scenes, recipe, vocabulary) for name, scenes in tested.items()}
    subsets = {name: Records(written, vocabulary, *table) for name, table in tables.items()}
    return Split(Path(), written, "", 0, vocabulary, recipe_version(recipe), subsets, digest="", intact=True)


def planned_tests(recipe: SplitRecipe, planned: Mapping[str, list[Scene]]) -> dict[str, SplitTests]:
    """A benchmark of each planned subset but train. They have texts and numbers of images, but no pixels."""
    split = planned_split(recipe, planned)
    return {name: SplitTests(SplitDataset(split, name, preload=False)) for name in split.subsets}
