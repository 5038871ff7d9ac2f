"""The tests of splits that aren't made yet, to count what models would be scored on."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from menagerie.envs.core.identity import json_value
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.splits.recipe import SplitRecipe, recorded_fields
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import Split, recipe_version
from menagerie.generators.vocabulary import Vocabulary


@cache
def planned_scenes(name: str, recipe: SplitRecipe) -> dict[str, list[Scene]]:
    """Return the scenes of each subset of a split, also those that hide too much; a frozen benchmark has no train."""
    return load_frozen(name).tested() if name in FROZEN else recipe.subsets()


def planned_split(recipe: SplitRecipe, planned: Mapping[str, list[Scene]]) -> Split:
    """Return the split of all planned subsets but train, without pixels."""
    tested = {name: scenes for name, scenes in planned.items() if name != "train"}
    vocabulary, written = Vocabulary.of(load_world(recipe.world)), json_value(recorded_fields(recipe))
    tables = {name: make_columns(name, scenes, recipe, vocabulary) for name, scenes in tested.items()}
    subsets = {name: Records(written, vocabulary, *table) for name, table in tables.items()}
    return Split(Path(), written, "", 0, vocabulary, recipe_version(recipe), subsets, digest="")
