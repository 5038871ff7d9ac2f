"""Recipes of splits as TOML files: built-in ones and users'."""

from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import Option, list_options
from menagerie.envs.core.reading import Unreadable, check_shape, read_toml
from menagerie.envs.core.validation import build
from menagerie.generators.rules.hold_out import set_texts
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe

# Kinds of splits. To add one, add it here, and its checks to `menagerie.generators.audit.run`.
KINDS: dict[str, type[SplitRecipe]] = {
    recipe.kind: recipe
    for recipe in (BindingRecipe, SpatialRecipe, DependenceRecipe, CountingRecipe, MultiObjectRecipe, ProbeRecipe)
}
FOLDER = Path(__file__).parents[1] / "recipes"
SHIPPED = {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}
FROZEN = {file.stem: file for file in sorted((FOLDER / "frozen").glob("*.toml"))}
"""Files of frozen benchmarks (menagerie.generators.frozen), each with all fields of a recipe in its table `recipe`."""


def read_recipe(name: str) -> SplitRecipe:
    """Read a recipe. `name` is a built-in recipe, a frozen benchmark, or a TOML file. Raises `UserError`."""
    known = SHIPPED | FROZEN
    path = Path(name) if name.endswith(".toml") else known[choose("recipe", name, known)]
    try:
        given = read_toml(path)
    except Unreadable as error:
        raise UserError(f"the recipe {path} can't be read: {error}") from error
    if path in FROZEN.values():
        given = given["recipe"]
    try:
        kind = KINDS[choose("kind of split", str(given.pop("kind", "")), KINDS)]
        if isinstance(given.get("sets"), dict):
            table = given["sets"].items()
            given["sets"] = set_texts({name: check_shape(its, list[str], f"set {name!r}") for name, its in table})
        return build(kind, given)
    except UserError as error:
        raise error.at(path) from error


def about(name: str) -> str:
    """The description of a built-in recipe or a frozen benchmark: the comment in its first line."""
    return (SHIPPED | FROZEN)[name].read_text().splitlines()[0].removeprefix("#").strip()


def options_by_kind() -> dict[str, list[Option]]:
    """Return, by kind of split, the options of its recipe that `SplitRecipe` doesn't have."""
    shared = {option.usage for option in list_options(SplitRecipe)}
    special = {
        name: [option for option in list_options(kind) if option.usage not in shared] for name, kind in KINDS.items()
    }
    return {name: options for name, options in special.items() if options}
