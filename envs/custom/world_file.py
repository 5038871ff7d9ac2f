"""Users' worlds: a TOML file that takes a subset of a world, or adds animals, textures and backgrounds to it."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import choose
from menagerie.envs.custom.cutouts import check_all_natural, natural_texture
from menagerie.envs.custom.source import Ingredient, Source
from menagerie.envs.slots import SIZES
from menagerie.envs.world import World

if TYPE_CHECKING:
    from menagerie.envs.drawing.cutout import Cutout

import os
import re
from collections.abc import Sequence
from pathlib import Path

from menagerie.envs import catalog
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, check_regular, read_toml
from menagerie.envs.core.validation import build
from menagerie.envs.custom.cutouts import all_cutouts, register_cutout
from menagerie.envs.custom.ingredients import make_ingredient
from menagerie.envs.world import WORLDS, checked_groups, within

KINDS = {"animal": "animals", "texture": "textures", "background": "backgrounds"}
MOST_NAMES = 200  # with so many a world has over a million pairs of things: nobody could render them

_loaded: dict[tuple, World] = {}


@dataclass(frozen=True)
class WorldTable:
    """The keys of a world file. A list that is None is that of the extended world, with the entries defined here
    added."""

    name: str = ""
    extends: str = "pug"
    animals: tuple[str, ...] | None = None
    textures: tuple[str, ...] | None = None
    backgrounds: tuple[str, ...] | None = None
    sizes: tuple[str, ...] | None = None
    animal: dict[str, dict[str, Any]] = field(default_factory=dict)
    texture: dict[str, dict[str, Any]] = field(default_factory=dict)
    background: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def entries(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the tables of one kind of ingredient, by name."""
        return getattr(self, kind)


def load_own_world(path: Path, above: Sequence[Path] = ()) -> World:
    """Return the world in a file, and register its ingredients in this process. It is built anew only if the file, one
    that its entries name or one that it extends has changed. `above` are the files that extend it."""
    if path.exists():
        check_regular(path)
    path = Path(os.path.realpath(path))  # `resolve` raises for links in a circle
    if path in above:
        raise UserError(f"{path} extends itself, by way of {above[-1]}")
    source, table = Source(path), read_table(path)
    base = base_world(source, table.extends, above)
    stamp = (path, base, *source.stamps(entry for kind in KINDS for entry in table.entries(kind).values()))
    if stamp not in _loaded:
        _loaded[stamp] = build_world(source, table, base)
    return _loaded[stamp]


def read_table(path: Path) -> WorldTable:
    """Read a world file; raises for unknown keys and wrong types. Animals given as a list of files become entries."""
    try:
        given = read_toml(path)
    except Unreadable as error:
        raise UserError(f"{path} can't be read as TOML: {error}") from error
    table = build(WorldTable, given, path)
    for key in (*KINDS, *KINDS.values(), "groups"):
        if len(getattr(table, key) or ()) > MOST_NAMES:
            raise UserError(f"{path}: {key} has {len(given[key])} names; a world has at most {MOST_NAMES} of a kind")
    return with_listed_files(path, table)


def with_listed_files(path: Path, table: WorldTable) -> WorldTable:
    """Add an entry for each Python file that `animals` lists: "snow_lynx.py" is the animal "snow lynx"."""
    name_of = {item: Path(item).stem.replace("_", " ") for item in table.animals or () if item.endswith(".py")}
    if twice := table.animal.keys() & set(name_of.values()):
        raise UserError(f"{path}: animal {min(twice)!r} is listed as a file and has a table of its own; leave one out")
    if not name_of:
        return table
    files = {name: {"file": item} for item, name in name_of.items()}
    animals = tuple(name_of.get(item, item) for item in table.animals or ())
    return replace(table, animals=animals, animal=table.animal | files)


def build_world(source: Source, table: WorldTable, base: World) -> World:
    """Make the world of a table that extends `base`; its ingredients are registered only after all checks."""
    defined = {
        kind: {name: make_ingredient(source, kind, name, entry) for name, entry in table.entries(kind).items()}
        for kind in KINDS
    }
    animals = chosen_names(source, table, "animals", base.animals, defined["animal"])
    cutouts = all_cutouts(base, defined["animal"], animals)
    textures = chosen_textures(source, table, base, defined["texture"], animals, cutouts)
    backgrounds = chosen_names(source, table, "backgrounds", base.backgrounds, defined["background"])
    sizes = chosen_sizes(source, table, base.sizes)
    groups = within(base.groups, animals) | table.groups
    groups = checked_groups(groups, animals, source.error)
    check_phrases(source, animals, textures, sizes)
    name = table.name or source.path.stem
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise source.error(f"name {name!r} must be letters, digits, - and _")
    check_placement(source, added_animals(base, defined["animal"], animals))
    register_all(defined)
    digests = "".join(ingredient.digest for kind in KINDS for ingredient in defined[kind].values())
    photographed = dict(base.cutouts) | {
        name: defined["animal"][name].digest for name in cutouts if name in defined["animal"]
    }
    replaced = dict(base.replaced) | {
        name: drawn_by("textures", ingredient)
        for name, ingredient in defined["texture"].items()
        if name in catalog.names("textures")
    }
    return World(
        name,
        animals,
        textures,
        backgrounds,
        sizes,
        own=base.own + digests,
        source=str(source.path),
        groups=groups,
        cutouts=tuple((animal, photographed[animal]) for animal in cutouts),
        replaced=tuple((name, replaced[name]) for name in textures if name in replaced),
    )


def drawn_by(plural: str, ingredient: Ingredient) -> str:
    """Return the name by which an ingredient is drawn: its own, plus its digest if a built-in one has that name."""
    name = ingredient.name
    return f"{name} {ingredient.digest}" if name in catalog.names(plural) else name


def register_all(defined: dict[str, dict[str, Ingredient]]) -> None:
    """Keep a world's ingredients in this process; cut-outs are kept by digest, all others by name."""
    for kind, plural in KINDS.items():
        for ingredient in defined[kind].values():
            if ingredient.is_cutout:
                register_cutout(ingredient)
            else:
                catalog.register(plural, kind, drawn_by(plural, ingredient), ingredient.digest, ingredient.value)


def base_world(source: Source, name: str, above: Sequence[Path]) -> World:
    """Return the world that this one extends: a built-in one, or one in a file in the same folder or below."""
    if name.endswith(".toml"):
        return load_own_world(source.file("world", name, name), (*above, source.path))
    return WORLDS[choose(f"world that {source.path} extends", name, WORLDS)]


def own_animals(path: Path) -> dict[str, Any]:
    """Return the animals defined in a world file and in the files that it extends, by name; none for a built-in world.
    They are neither registered nor checked for their placement."""
    defined: dict[str, Any] = {}
    seen: list[Path] = []
    while path.suffix == ".toml" and path not in seen:
        source, table = Source(path.resolve()), read_table(path)
        entries = table.animal.items()
        defined = {name: make_ingredient(source, "animal", name, entry).value for name, entry in entries} | defined
        seen.append(path)
        path = source.path.parent / table.extends
    return defined


def added_animals(base: World, defined: dict[str, Ingredient], animals: tuple[str, ...]) -> dict[str, Any]:
    """Return the animals that the base world lacks or that the file defines, by name."""
    ours = (name for name in animals if name not in (*base.animals, *defined))
    built_in = {name: catalog.load("animals", "animal", name) for name in ours}
    return built_in | {name: ingredient.value for name, ingredient in defined.items()}


def check_placement(source: Source, animals: dict[str, Any]) -> None:
    """Raise unless each animal stays inside the frame and on its own side of a pair."""
    from menagerie.envs.custom.limits import advice, required

    for name, animal in animals.items():
        for measure in required(name, animal):
            if not measure.kept:
                value = f"{measure.value:.2f} {measure.unit} in {measure.place}, must be {measure.bound}"
                raise source.error(f"{name!r} doesn't fit: its {measure.name} is {value}; {advice(measure)}")


def chosen_textures(
    source: Source,
    table: WorldTable,
    base: World,
    defined: dict[str, Ingredient],
    animals: tuple[str, ...],
    cutouts: dict[str, "Cutout"],
) -> tuple[str, ...]:
    """Return the names of the world's textures; for cut-outs in their own colours, the one word that stands for
    them."""
    if not any(cutout.natural for cutout in cutouts.values()):
        return chosen_names(source, table, "textures", base.textures, defined)
    check_all_natural(source, animals, cutouts)
    return natural_texture(source, table.textures, base)


def chosen_names(
    source: Source, table: WorldTable, plural: str, base: tuple[str, ...], defined: dict[str, Ingredient]
) -> tuple[str, ...]:
    """Return the names that the world uses, in its order. By default these are the base world's and those defined in
    the file; a file may also list any other built-in name."""
    usual = list(dict.fromkeys([*base, *defined]))  # a cut-out may replace an animal of the base world
    listed = getattr(table, plural)
    given, known = (usual, usual) if listed is None else (listed, dict.fromkeys([*usual, *catalog.names(plural)]))
    names = tuple(choose(f"{plural} in {source.path}", name, known) for name in given)
    least = 1 if plural == "backgrounds" else 2
    if len(set(names)) != len(names) or len(names) < least:
        raise source.error(f"{plural} needs at least {least} different names, got {list(names)}")
    return names


def chosen_sizes(source: Source, table: WorldTable, base: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sizes of the world; an empty list in the file means none."""
    sizes = tuple(
        choose(f"sizes in {source.path}", name, SIZES) for name in (base if table.sizes is None else table.sizes)
    )
    if len(set(sizes)) != len(sizes) or len(sizes) == 1:
        raise source.error(f"sizes needs two or more different ones of {', '.join(SIZES)}, or none; got {list(sizes)}")
    return sizes


def check_phrases(
    source: Source, animals: tuple[str, ...], textures: tuple[str, ...], sizes: tuple[str, ...] = ()
) -> None:
    """Raise unless each phrase "texture animal", with or without a size before it, has one meaning."""
    for name in (*textures, *animals):
        if clashes := set(sizes) & set(name.split()):
            raise source.error(f"{name!r} has the word {min(clashes)!r}, which is a size of this world; rename it")
    seen: dict[str, tuple[str, str]] = {}
    for texture, animal in product(textures, animals):
        other = seen.setdefault(f"{texture} {animal}", (texture, animal))
        if other != (texture, animal):
            raise source.error(f"'{texture} {animal}' is {other} and {(texture, animal)}; rename one of them")
