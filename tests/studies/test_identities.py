"""Identities last: a new field with a default changes none of them, a changed default changes all."""

import dataclasses
import json
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from pathlib import Path

import pytest

from menagerie.envs.core import identity
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, digest, identity_of, json_value
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import split_name
from menagerie.models.recipe import Recipe
from menagerie.models.registry import specs
from menagerie.models.scorers.clip import CLIPConfig
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.binding_grid import PRESETS, Config
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.options import EXECUTION
from menagerie.studies.runs.folder import claim, describe_differences, with_defaults
from tests.grid_cells import cells, chosen_alone, splits

SNAPSHOT = Path(__file__).parents[1] / "data" / "defaults.json"
# Everything whose defaults are left out of identities.
NAMED = [Recipe, TowerConfig, *KINDS.values(), *dict.fromkeys(spec.config for spec in specs().values())]


def with_field(kind: type, value: object = 3) -> type:
    """The class with one more field, as the next version may have it."""
    more = make_dataclass(kind.__name__, [("later", int, field(default=value))], bases=(kind,), frozen=True)
    return more


def smoke() -> Grid:
    return chosen_alone(PRESETS["smoke"])


def test_a_new_field_of_a_recipe_changes_no_cell():
    before = [cell.id for cell in cells(smoke(), "store")]
    later = with_field(Recipe)
    grid = dataclasses.replace(smoke(), recipe=later(**asdict(smoke().recipe)))
    assert [cell.id for cell in cells(grid, "store")] == before
    changed = dataclasses.replace(grid, recipe=dataclasses.replace(grid.recipe, later=4))
    assert not set(before) & {cell.id for cell in cells(changed, "store")}


def test_a_new_field_of_a_split_changes_no_file_and_no_cell():
    for recipe in splits(smoke()):
        later = with_field(type(recipe))(**asdict(recipe))
        assert split_name(later) == split_name(recipe)
        assert split_name(dataclasses.replace(later, later=4)) != split_name(recipe)


def test_a_new_field_of_a_grid_refuses_no_folder(tmp_path):
    """A half-finished run of the version before goes on; one that sets the field to something else does not."""
    claim(tmp_path, smoke(), EXECUTION)
    (tmp_path / "cells").mkdir()
    claim(tmp_path, smoke(), EXECUTION)
    later = with_field(Config)
    own = {item.name: getattr(smoke(), item.name) for item in fields(smoke())}
    claim(tmp_path, later(**own), EXECUTION)
    nested = {**own, "recipe": with_field(Recipe)(**asdict(smoke().recipe))}
    claim(tmp_path, later(**nested), EXECUTION)
    with pytest.raises(UserError, match=r"later \(3 there, 4 now\)"):
        claim(tmp_path, later(**own, later=4), EXECUTION)


def test_only_fields_that_differ_from_defaults_decide_an_identity():
    assert changed_fields(Recipe()) == {}
    assert changed_fields(Recipe(steps=7, betas=(0.5, 0.6))) == {"steps": 7, "betas": [0.5, 0.6]}

    @dataclass(frozen=True)
    class Outer:
        inner: Recipe = field(default_factory=Recipe)
        given: int = 1

    assert changed_fields(Outer(Recipe(steps=7))) == {"inner": {"steps": 7}}
    assert with_defaults({"given": 2, "old": 5}, Outer())["inner"]["steps"] == Recipe().steps
    assert describe_differences(json_value(asdict(Outer())), Outer(given=4)) == "given (1 there, 4 now)"


def test_defaults_that_changed_have_a_new_version():
    """Whoever changes a default raises the number of its class in `VERSIONS`, and writes it here; new fields need
    no entry until they are released: `python -m tests.studies.test_identities` writes the file anew."""
    recorded = json.loads(SNAPSHOT.read_text())
    for kind in NAMED:
        before, now = recorded[kind.__name__], json_value(asdict(kind()))
        changed = [name for name, value in before["defaults"].items() if name not in now or now[name] != value]
        version = identity.VERSIONS.get(kind.__name__, 1)
        assert not changed or version > before["version"], f"{kind.__name__}: raise its version, {changed} changed"


def test_a_raised_version_changes_identities(monkeypatch):
    before = identity_of(Recipe()), [cell.id for cell in cells(smoke(), "store")]
    monkeypatch.setitem(identity.VERSIONS, "Recipe", 2)
    assert digest(identity_of(Recipe())) != digest(before[0])
    assert not set(before[1]) & {cell.id for cell in cells(smoke(), "store")}


def test_a_raised_version_counts_for_classes_that_inherit_it(monkeypatch):
    """A class of a user's own that extends a registered one trains as that does."""

    class Mine(CLIPConfig):
        pass

    before = identity.defaults_version(Mine)
    monkeypatch.setitem(identity.VERSIONS, "CLIPConfig", identity.VERSIONS.get("CLIPConfig", 1) + 1)
    assert identity.defaults_version(Mine) == identity.defaults_version(CLIPConfig) != before


if __name__ == "__main__":
    table = {
        kind.__name__: {"version": identity.VERSIONS.get(kind.__name__, 1), "defaults": json_value(asdict(kind()))}
        for kind in NAMED
    }
    SNAPSHOT.write_text(json.dumps(table, indent=1) + "\n")
