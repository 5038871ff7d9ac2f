"""Users' worlds: a TOML file that takes a subset of a world, or adds animals, textures and backgrounds to it."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from menagerie.envs import catalog
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.reading import Unreadable, check_regular, read_toml
from menagerie.envs.core.validation import build_dataclass
from menagerie.envs.custom.cutouts import OWN_COLORS, cutouts_of, load_cutout, natural_texture
from menagerie.envs.custom.ingredients import make_ingredient
from menagerie.envs.custom.source import Ingredient, WorldFile
from menagerie.envs.slots import SIZES
from menagerie.envs.world import WORLDS, World, restrict_sets, validate_sets

KINDS = ("animal", "texture", "background")
MOST_NAMES = 200  # with so many a world has over a million pairs of objects: nobody could render them

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
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)


def load_own_world(path: Path, above: Sequence[Path] = ()) -> World:
    """Return the world in a file, and register its ingredients in this process. It is built anew only if the file, one
    that its entries name or one that it extends has changed. `above` are the files that extend it."""
    if path.exists():
        check_regular(path)
    path = Path(os.path.realpath(path))  # `resolve` raises for links in a circle
    if path in above:
        raise UserError(f"{path} extends itself, by way of {above[-1]}")
    source, table = WorldFile(path), read_table(path)
    base = base_world(source, table.extends, above)
    stamp = (path, base, *source.stamps(entry for kind in KINDS for entry in getattr(table, kind).values()))
    if stamp not in _loaded:
        _loaded[stamp] = build_world(source, table, base)
    return _loaded[stamp]


def read_table(path: Path) -> WorldTable:
    """Read a world file; raises for unknown keys and wrong types. Animals given as a list of files become entries."""
    try:
        given = read_toml(path)
    except Unreadable as error:
        raise UserError(f"{path} can't be read as TOML: {error}") from error
    table = build_dataclass(WorldTable, given, path)
    for key in (*KINDS, *(f"{kind}s" for kind in KINDS), "sets"):
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


def build_world(source: WorldFile, table: WorldTable, base: World) -> World:
    """Make the world of a table that extends `base`; its ingredients are registered only after all checks."""
    defined = {
        kind: {name: make_ingredient(source, kind, name, entry) for name, entry in getattr(table, kind).items()}
        for kind in KINDS
    }
    animals = chosen_names(source, table, "animals", base, defined["animal"])
    cutouts = cutouts_of(base, defined["animal"], animals)
    textures = chosen_textures(source, table, base, defined["texture"], animals, cutouts)
    backgrounds = chosen_names(source, table, "backgrounds", base, defined["background"])
    sizes = chosen_names(source, table, "sizes", base)
    sets = validate_sets(restrict_sets(base.sets, animals) | table.sets, animals, source.error)
    check_phrases(source, animals, textures, sizes)
    name = table.name or source.path.stem
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise source.error(f"name {name!r} must be letters, digits, - and _")
    check_placement(source, base, defined["animal"], animals)
    register_all(defined)
    ours = {texture: name_when_drawn("textures", ingredient) for texture, ingredient in defined["texture"].items()}
    replaced = dict(base.replaced) | {texture: drawn for texture, drawn in ours.items() if drawn != texture}
    return World(
        name,
        animals,
        textures,
        backgrounds,
        sizes,
        own=base.own + "".join(ingredient.digest for kind in KINDS for ingredient in defined[kind].values()),
        source=str(source.path),
        sets=sets,
        cutouts=tuple(cutouts.items()),
        replaced=tuple((texture, replaced[texture]) for texture in textures if texture in replaced),
    )


def name_when_drawn(plural: str, ingredient: Ingredient) -> str:
    """Return the name by which an ingredient is drawn: its own, plus its digest if a built-in one has that name."""
    name = ingredient.name
    return f"{name} {ingredient.digest}" if name in catalog.names(plural) else name


def register_all(defined: dict[str, dict[str, Ingredient]]) -> None:
    """Keep a world's ingredients in this process by name; cut-outs are kept already, by digest."""
    for kind in KINDS:
        for ingredient in defined[kind].values():
            if not ingredient.is_cutout:
                catalog.register(
                    f"{kind}s", name_when_drawn(f"{kind}s", ingredient), ingredient.digest, ingredient.value
                )


def base_world(source: WorldFile, name: str, above: Sequence[Path]) -> World:
    """Return the world that this one extends: a built-in one, or one in a file in the same folder or below."""
    if name.endswith(".toml"):
        return load_own_world(source.file("world", name, name), (*above, source.path))
    return WORLDS[choose(f"world that {source.path} extends", name, WORLDS)]


def own_animals(path: Path, above: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the animals defined in a world file and in the files that it extends, by name; none for a built-in world.
    They are neither registered nor checked for their placement."""
    if path.suffix != ".toml" or path in above:
        return {}
    source, table = WorldFile(path.resolve()), read_table(path)
    inherited = own_animals(source.path.parent / table.extends, (*above, path))
    return inherited | {
        name: make_ingredient(source, "animal", name, entry).value for name, entry in table.animal.items()
    }


def check_placement(source: WorldFile, base: World, defined: dict[str, Ingredient], animals: tuple[str, ...]) -> None:
    """Raise unless each animal that `base` lacks or the file defines stays inside the frame and on its own side of a
    pair."""
    from menagerie.envs.custom.limits import REQUIRED

    for name in (name for name in animals if name in defined or name not in base.animals):
        animal = defined[name].value if name in defined else catalog.load_animal(name)
        for limit in REQUIRED:
            if not (measured := limit.measure(name, animal)).kept:
                value = f"{measured.value:.2f} {limit.unit} in {measured.place}, must be {limit.bound}"
                raise source.error(f"{name!r} doesn't fit: its {limit.name} is {value}; {measured.advice}")


def chosen_textures(
    source: WorldFile,
    table: WorldTable,
    base: World,
    defined: dict[str, Ingredient],
    animals: tuple[str, ...],
    cutouts: dict[str, str],
) -> tuple[str, ...]:
    """Return the names of the world's textures; for cut-outs in their own colours, the one word that stands for
    them."""
    natural = [name for name, digest in cutouts.items() if load_cutout(digest).natural]
    if not natural:
        return chosen_names(source, table, "textures", base, defined)
    if others := [name for name in animals if name not in natural]:
        raise source.error(
            f'{others[0]!r} must be a cut-out with texture = "{OWN_COLORS}", as others of this world are, or be left '
            "out of its animals"
        )
    return natural_texture(source, table.textures, base)


def chosen_names(
    source: WorldFile, table: WorldTable, plural: str, base: World, own: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the names that the world uses, in its order. By default these are the base world's and its own; a file may
    also list any other built-in name, or no sizes."""
    given, usual = getattr(table, plural), dict.fromkeys([*getattr(base, plural), *own])  # cut-outs replace animals
    known = SIZES if plural == "sizes" else usual | dict.fromkeys(catalog.names(plural))
    names = tuple(choose(f"{plural} in {source.path}", name, known) for name in (usual if given is None else given))
    least = {"backgrounds": 1, "sizes": 2 if given else 0}.get(plural, 2)
    if len(set(names)) != len(names) or len(names) < least:
        raise source.error(f"{plural} needs at least {least} different names, got {list(names)}")
    return names


def check_phrases(source: WorldFile, animals: Sequence[str], textures: Sequence[str], sizes: Sequence[str]) -> None:
    """Raise unless each phrase "texture animal", with or without a size before it, has one meaning."""
    for name in (*textures, *animals):
        if clashes := set(sizes) & set(name.split()):
            raise source.error(f"{name!r} has the word {min(clashes)!r}, which is a size of this world; rename it")
    seen: dict[str, tuple[str, str]] = {}
    for texture, animal in product(textures, animals):
        other = seen.setdefault(f"{texture} {animal}", (texture, animal))
        if other != (texture, animal):
            raise source.error(f"'{texture} {animal}' is {other} and {(texture, animal)}; rename one of them")
