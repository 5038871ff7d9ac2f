"""Recipes of splits as TOML files: built-in ones and users'."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import docstring
from menagerie.envs.core.plugins import Exports
from menagerie.envs.core.reading import check_shape, read_toml
from menagerie.envs.core.validation import build_dataclass
from menagerie.generators.rules.hold_out import set_texts
from menagerie.generators.splits.recipe import SplitRecipe

EXPORTS = Exports("menagerie.generators.splits", Path(__file__).parent, "KIND", "kind of split")
KINDS: dict[str, type[SplitRecipe]] = {kind.kind: kind for kind in map(EXPORTS.load, EXPORTS.names())}
"""Kinds of splits: the `KIND` of each file in this folder that has one."""
FOLDER = Path(__file__).parents[1] / "recipes"
SHIPPED = {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}
FROZEN = {file.stem: file for file in sorted((FOLDER / "frozen").glob("*.toml"))}
"""Files of frozen benchmarks (menagerie.generators.frozen), each with all fields of a recipe in its table `recipe`."""


def read_recipe(name: str) -> SplitRecipe:
    """Read a recipe. `name` is a built-in recipe, a frozen benchmark, a kind of split, whose fields then have their
    defaults, or a TOML file. Raises `UserError`."""
    known = SHIPPED | FROZEN
    if name in KINDS.keys() - known.keys():
        return KINDS[name]()
    path = Path(name) if name.endswith(".toml") else known[choose("recipe", name, known)]
    given = read_toml(path)
    if path in FROZEN.values():
        given = given["recipe"]
    try:
        kind = KINDS[choose("kind of split", str(given.pop("kind", "")), KINDS)]
        if isinstance(given.get("sets"), dict):
            table = given["sets"].items()
            given["sets"] = set_texts({name: check_shape(its, list[str], f"set {name!r}") for name, its in table})
        return build_dataclass(kind, given)
    except UserError as error:
        raise error.at(path) from error


def recipe_names() -> list[str]:
    """The names of built-in recipes, and the kinds of splits that have none of their name."""
    return [*SHIPPED, *(KINDS.keys() - SHIPPED.keys())]


def describe_recipe(name: str) -> str:
    """The description of a built-in recipe or a frozen benchmark, the comment in its first line; of a kind of split the
    first line of its docstring."""
    if file := (SHIPPED | FROZEN).get(name):
        return file.read_text().splitlines()[0].removeprefix("#").strip()
    return docstring(KINDS[name]).splitlines()[0]


def read_recorded(recorded: Mapping[str, Any]) -> SplitRecipe:
    """The recipe that a split file records. Raises if the file has another version's fields or values."""
    kind = KINDS[choose("kind of split", str(recorded.get("kind")), KINDS)]
    known = {field.name for field in fields(kind)}
    if missing := known - recorded.keys():
        raise UserError(f"the recorded recipe has no {' and no '.join(sorted(missing))}")
    return build_dataclass(kind, {name: value for name, value in recorded.items() if name in known})
