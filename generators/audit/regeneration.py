"""A split made again in memory from its recipe, and compared with the file record by record.

The other checks say what any sound split is; this one, what this recipe makes: with another seed, template or view, or
with a scene more or less, the file is not what it says.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import plain
from menagerie.envs.core.validation import build
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import Finding, skipped
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import REMEDY, Records, Split, describe, recipe_version, recorded
from menagerie.generators.vocabulary import Vocabulary

CLAIM = "the split is what its recipe makes"
TEXTS = {
    "captions": "caption",
    "negatives": "hard negative",
    "graphs": "graph",
    "negative_graphs": "graph of the hard negative",
}


class Incomparable(Exception):
    """Why a split can't be made again here."""


def check_regeneration(split: Split, world_file: Path | None = None) -> Iterator[Finding]:
    """Every subset has the scenes, texts, graphs and partners that the recipe gives, in its order."""
    try:
        made = made_again(split, world_file)
    except Incomparable as reason:
        yield skipped(CLAIM, str(reason))
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


def made_again(split: Split, world_file: Path | None = None) -> dict[str, Records]:
    """The subsets of the split's recipe, with rows of no store; one that can't be compared raises `Incomparable`."""
    recipe = replace(recipe_of(split), world=trusted_world(split.recipe["world"], world_file))
    check_world(split, recipe)
    if not split.recipe_version and split.recipe.keys() != recorded(recipe).keys():
        raise Incomparable(f"its recipe is of an earlier version, which had other fields; {REMEDY}")
    planned = recipe.subsets()
    row_of = {scene: row for row, scene in enumerate(recipe.with_partners(planned))}
    return {name: describe(name, scenes, row_of, recipe) for name, scenes in planned.items()}


def trusted_world(recorded_name: str, world_file: Path | None) -> str:
    """The built-in world that a recipe names, or the file that the user names; no other raises `Incomparable`.

    A world file may have Python files run: what a split from elsewhere names is never opened.
    """
    own = recorded_name.endswith(".toml")
    if world_file is not None and not own:
        raise Incomparable(f"its world is {recorded_name!r}, not a file; leave out --world")
    if own and world_file is None:
        raise Incomparable(
            f"its world is a file, which may run code of its own: if you trust it, --world {recorded_name}"
        )
    return str(world_file) if own else recorded_name


def recipe_of(split: Split) -> SplitRecipe:
    """The recipe that a split records; one of another version raises `Incomparable`."""
    kind, given = KINDS[split.recipe["kind"]], {name: its for name, its in split.recipe.items() if name != "kind"}
    here, there = recipe_version(kind()), split.recipe_version
    if there not in ("", here):
        raise Incomparable(f"its recipe is of version {there}, this code of {here}; {REMEDY}")
    if not there and given.keys() - set(kind.__dataclass_fields__):
        raise Incomparable(f"its recipe is of another version, which had other fields; {REMEDY}")
    return build(kind, given)


def check_world(split: Split, recipe: SplitRecipe) -> None:
    """Raise `Incomparable` unless the world of the recipe is here and has the names of the split."""
    try:
        world = load_world(recipe.world)
    except UserError as error:
        raise Incomparable(f"{error}; give the world's file by --world") from error
    here, there = Vocabulary.of(world), split.vocabulary
    for name in ("animals", "textures", "backgrounds", "sizes"):
        if getattr(here, name) != getattr(there, name):
            raise Incomparable(f"the {name} of world {recipe.world!r} are others by now; {REMEDY}")


def first_difference(own: Records, made: Records) -> str:
    """What is different in a subset, and where; empty if nothing is."""
    if own.scenes != made.scenes:
        return scene_difference(own.scenes, made.scenes)
    for field, what in TEXTS.items():
        for i, (its, other) in enumerate(zip(getattr(own, field), getattr(made, field), strict=True)):
            if its != other:
                return f"{what} of record {i}, {own.scenes[i].key}: {plain(its)!r}, made again {plain(other)!r}"
    for i, (its, other) in enumerate(zip(own.partners >= 0, made.partners >= 0, strict=True)):
        if its != other:
            return f"record {i}, {own.scenes[i].key}, has {'a' if its else 'no'} partner, made again it is otherwise"
    return ""


def scene_difference(own: Sequence, made: Sequence) -> str:
    """Which scenes are missing or too many, or that they are in another order."""
    missing, extra = Counter(made) - Counter(own), Counter(own) - Counter(made)
    parts = [
        f"{scenes.total()} scenes {what}, first {min(scenes).key}"
        for scenes, what in ((missing, "missing"), (extra, "too many"))
        if scenes
    ]
    if parts:
        return ", ".join(parts)
    i = next(i for i, (its, other) in enumerate(zip(own, made, strict=True)) if its != other)
    return f"the scenes are in another order, first record {i}: {own[i].key}, made again {made[i].key}"
