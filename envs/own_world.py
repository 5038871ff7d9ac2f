"""Worlds of the user's own: a TOML file that subsets or extends a world with meshes and pictures."""

import hashlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from envs.catalog import register
from envs.errors import UserError, choose
from envs.world import World

KINDS = {"animal": "animals", "texture": "textures", "background": "backgrounds"}
NAME = re.compile(r"[a-z]+( [a-z]+)*")
# What an entry may say, and what it says when it doesn't.
FIELDS: dict[str, dict[str, Any]] = {
    "animal": {"mesh": "", "size": 1.4, "hover": 0.0, "turn": [0, 0, 0]},
    "texture": {"image": "", "function": "", "tile": 1.0, "specular": 0.1, "gloss": 10.0},
    "background": {"image": "", "function": "", "horizon": 0.45},
}
SIZES = (0.1, 3.0)  # metres


@dataclass(frozen=True)
class Source:
    """The TOML file; all other files lie in its folder or below."""

    path: Path

    def file(self, kind: str, name: str, relative: str) -> Path:
        """A file that an entry names."""
        root = self.path.parent.resolve()
        path = (root / relative).resolve()
        if not path.is_relative_to(root):
            raise UserError(
                f"{self.path}: the file of {kind} {name!r} lies outside {root}: {relative!r}; move it there"
            )
        if not path.is_file():
            raise UserError(f"{self.path}: {kind} {name!r} needs {path}, which is not there")
        return path

    def error(self, text: str) -> UserError:
        """An error of this file."""
        return UserError(f"{self.path}: {text}")


def load_own_world(path: Path, load_world: Callable[[str], World]) -> World:
    """Read a world, make its ingredients known in this process, and check that they fit their slots."""
    source, table = Source(path), read_table(path)
    unknown = table.keys() - {"name", "extends", *KINDS.values(), *KINDS}
    if unknown:
        choose(f"key in {path}", min(unknown), ["name", "extends", *KINDS.values(), *KINDS])
    base = load_world(table.get("extends", "pug"))
    digest = hashlib.sha256(base.own.encode())
    vocabulary = {}
    for kind, plural in KINDS.items():
        own = table.get(kind, {})
        for name, entry in own.items():
            vocabulary[name] = None
            digest.update(add_ingredient(source, kind, name, entry).encode())
        known = [*getattr(base, plural), *own]
        vocabulary[plural] = tuple(choose(kind, name, known) for name in table.get(plural, known))
        if len(set(vocabulary[plural])) != len(vocabulary[plural]) or not vocabulary[plural]:
            raise source.error(f"{plural} needs one or more different names, got {list(vocabulary[plural])}")
    if len(vocabulary["animals"]) < 2 or len(vocabulary["textures"]) < 2:
        raise source.error("a world needs at least two animals and two textures")
    name = table.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise source.error(f"name {name!r} must be letters, digits, - and _")
    own = digest.hexdigest()[:16] if any(table.get(kind) for kind in KINDS) else base.own
    world = World(name, *(vocabulary[plural] for plural in KINDS.values()), own=own, source=str(path.resolve()))
    check_placement(source, [animal for animal in table.get("animal", {}) if animal in world.animals])
    return world


def read_table(path: Path) -> dict[str, Any]:
    """The TOML file as a dictionary."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} can't be read as TOML: {error}") from error


def add_ingredient(source: Source, kind: str, name: str, entry: dict[str, Any]) -> str:
    """Register one entry; returns the hash of all that it says and of its file."""
    if not NAME.fullmatch(name):
        raise source.error(f"{kind} {name!r}: a name is lower-case words, as captions say them")
    if not isinstance(entry, dict):
        raise source.error(f"{kind}.{name} must be a table of {', '.join(FIELDS[kind])}")
    for key in entry:
        choose(f"field of {kind} {name!r} in {source.path}", key, FIELDS[kind])
    values = FIELDS[kind] | entry
    files = [key for key in ("mesh", "image", "function") if values.get(key)]
    if len(files) != 1:
        wanted = " or ".join(key for key in ("mesh", "image", "function") if key in FIELDS[kind])
        raise source.error(f"{kind} {name!r} needs one {wanted}")
    relative, _, function = values[files[0]].partition(":")
    path = source.file(kind, name, relative)
    digest = hashlib.sha256(repr((kind, name, sorted(values.items()))).encode() + path.read_bytes()).hexdigest()
    build = {"animal": own_animal, "texture": own_texture, "background": own_background}[kind]
    register(KINDS[kind], kind, name, digest, build(source, name, values, path, function))
    return digest


def number(source: Source, name: str, values: dict[str, Any], key: str, low: float, high: float) -> float:
    """A number of an entry, within bounds."""
    value = values[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise source.error(f"{key} of {name!r} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def own_animal(source: Source, name: str, values: dict[str, Any], path: Path, _: str):
    """An animal from a mesh."""
    from envs.own_mesh import read_mesh

    turn = values["turn"]
    if not isinstance(turn, list) or len(turn) != 3 or not all(isinstance(angle, int | float) for angle in turn):
        raise source.error(f"turn of {name!r} must be three angles in degrees, about x, y and z, got {turn!r}")
    size, hover = number(source, name, values, "size", *SIZES), number(source, name, values, "hover", 0, 1)
    return read_mesh(path, size, hover, tuple(turn))


def own_texture(source: Source, name: str, values: dict[str, Any], path: Path, function: str):
    """A texture from a picture, or from a function of noise (n, 4) to linear colours (n, 3)."""
    from envs.own_picture import PictureTexture, read_picture
    from envs.texture import Texture

    specular, gloss = number(source, name, values, "specular", 0, 1), number(source, name, values, "gloss", 1, 200)
    if function or values["function"]:
        return Texture(python_function(source, name, path, function), specular, gloss)
    return PictureTexture(read_picture(path), number(source, name, values, "tile", 0.05, 10), specular, gloss)


def own_background(source: Source, name: str, values: dict[str, Any], path: Path, function: str):
    """A background from a picture, or from a function that draws along rays (see `envs.background`)."""
    from envs.background import Background
    from envs.own_picture import picture_background, read_picture
    from envs.shading import Light

    light = Light((1.1, 1.05, 0.98), (0.36, 0.40, 0.46), (0.2, 0.18, 0.16))
    if function or values["function"]:
        return Background(light, python_function(source, name, path, function))
    return picture_background(read_picture(path), light, number(source, name, values, "horizon", 0.1, 0.9))


def python_function(source: Source, name: str, path: Path, function: str) -> Callable:
    """The function of the user's own Python file."""
    spec = spec_from_file_location(f"menagerie_own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise source.error(f"the function of {name!r} must be in a Python file, written file.py:name")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, function)
    except Exception as error:
        raise source.error(f"{path}:{function} can't be loaded ({type(error).__name__}: {error})") from error


def check_placement(source: Source, animals: list[str]) -> None:
    """Raise unless each animal stays inside the frame and on its own side of a pair."""
    from envs.placement_check import misplaced

    for animal in animals:
        if problem := misplaced(animal):
            raise source.error(f"{problem}; give {animal!r} a smaller size or turn it")
