"""Makes a split again in memory, from its recipe, and compares it with the file.

The other checks test what holds for every sound split. This one finds deviations from the split's own recipe: another
seed, template or view, or a scene more or less.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import json_value
from menagerie.envs.core.reading import check_shape
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import Finding, skipped_finding
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.folder import drop_scenes
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import LEFT_OUT, REMEDY, Split, recipe_version
from menagerie.generators.vocabulary import Vocabulary

CLAIM = "the split is what its recipe makes"


class Incomparable(Exception):
    """Raised if a split can't be regenerated here; its text says why."""


def check_regeneration(split: Split, world_file: Path | None = None) -> Iterator[Finding]:
    """Check that every subset has the scenes, texts, graphs and counterfactuals that the recipe gives, in the same
    order."""
    try:
        made = remake_subsets(split, world_file)
    except Incomparable as reason:
        yield skipped_finding(CLAIM, str(reason))
        return
    except UserError as error:
        yield Finding(CLAIM, False, f"its recipe can't be made: {error}")
        return
    strange = sorted(split.subsets.keys() ^ made.keys())
    yield Finding("the subsets are those of the recipe", not strange, f"first: {strange[0]}" if strange else "")
    for name in (name for name in made if name in split.subsets):
        difference = first_difference(split.subsets[name], made[name])
        detail = difference or f"{len(made[name])} records"
        yield Finding(f"{name} is what the recipe makes", not difference, detail)


def remake_subsets(split: Split, world_file: Path | None = None) -> dict[str, Records]:
    """Make the subsets of the split's recipe again. Raises `Incomparable` if that is impossible here."""
    recipe, world = current_recipe(split, world_file), trusted_world(split, world_file)
    if replace(Vocabulary.of(world), slots=split.vocabulary.slots) != split.vocabulary:
        raise Incomparable(f"the names of world {recipe.world!r} are others by now; {REMEDY}")
    kept, v = drop_scenes(recipe.subsets(), recorded_left_out(split)), split.vocabulary
    return {name: Records(split.recipe, v, *make_columns(name, scenes, recipe, v)) for name, scenes in kept.items()}


def recorded_left_out(split: Split) -> dict[str, list[int]]:
    """For each subset, the indices of the scenes that were left out after rendering."""
    return check_shape(split.recipe.get(LEFT_OUT, {}), dict[str, list[int]], f"{LEFT_OUT} in {split.path}")


def trusted_world(split: Split, world_file: Path | None) -> World:
    """The built-in world that a split names, or that of the file that the user names; raises `Incomparable` otherwise.

    Loading a world file may execute Python files, so a file that a split from elsewhere names is never opened.
    """
    recorded = split.recipe["world"]
    is_file = recorded.endswith(".toml")
    if world_file is not None and not is_file:
        raise Incomparable(f"its world is {recorded!r}, not a file; leave out --world")
    if is_file and world_file is None:
        raise Incomparable(f"its world is a file, which may run code of its own: if you trust it, --world {recorded}")
    try:
        return load_world(str(world_file or recorded))
    except UserError as error:
        raise Incomparable(f"{error}; give the world's file by --world") from error


def current_recipe(split: Split, world_file: Path | None = None) -> SplitRecipe:
    """The recipe that a split records, of the world in `world_file` if that is given; raises `Incomparable` if it is of
    another version."""
    here, there = recipe_version(split.kind), split.recipe_version
    if there != here:
        raise Incomparable(f"its recipe is of version {there}, this code of {here}; {REMEDY}")
    return replace(split.made_by, world=str(world_file)) if world_file else split.made_by


def first_difference(recorded: Records, made: Records) -> str:
    """The first difference between the recorded and the regenerated subset, in words; empty if there is none."""
    for i, (scene, again) in enumerate(zip_longest(recorded.scenes, made.scenes)):
        if scene != again:
            one, other = (its.key if its else "none" for its in (scene, again))
            numbers = f"{len(recorded)} records, made again {len(made)}"
            return f"{numbers}; first other scene: record {i}, {one}, made again {other}"
    for what in ("true", "false"):
        for i, (text, again) in enumerate(zip(getattr(recorded, what), getattr(made, what), strict=True)):
            if text != again:
                key = recorded.scenes[i].key
                return f"{what} caption of record {i}, {key}: {json_value(text)!r}, made again {json_value(again)!r}"
    other = [name for name, column in made.columns.items() if not np.array_equal(column, recorded.columns.get(name))]
    return f"its columns {', '.join(other)} are others, of records or of counterfactuals" if other else ""
