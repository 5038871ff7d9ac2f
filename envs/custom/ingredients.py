"""One entry of a world file: a user's animal, texture or background."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from envs.catalog import check_free
from envs.common.errors import UserError, choose
from envs.custom.python_file import python_animal, python_function, try_function
from envs.groups import NAME

if TYPE_CHECKING:
    from envs.catalog import OwnIngredient
    from envs.drawing.background import Background
    from envs.drawing.mesh_file import MeshAnimal
    from envs.drawing.picture_file import PictureTexture
    from envs.shapes.animal import Animal
    from envs.shapes.texture import Texture

FILES = ("mesh", "file", "image", "function")
# The fields of an entry with their defaults.
FIELDS: dict[str, dict[str, Any]] = {
    "animal": {"mesh": "", "file": "", "size": 1.4, "hover": 0.0, "turn": [0, 0, 0]},
    "texture": {"image": "", "function": "", "tile": 1.0, "specular": 0.1, "gloss": 10.0},
    "background": {"image": "", "function": "", "horizon": 0.45},
}
# Least and greatest value of each number.
BOUNDS = {
    "size": (0.1, 3.0),
    "hover": (0.0, 1.0),
    "turn": (-360.0, 360.0),
    "tile": (0.05, 10.0),
    "specular": (0.0, 1.0),
    "gloss": (1.0, 200.0),
    "horizon": (0.1, 0.9),
}
LARGEST_FILE = 64 << 20  # bytes


class Ingredient(NamedTuple):
    """The object that an entry defines, and a hash of the entry and its file."""

    name: str
    digest: str
    value: "OwnIngredient"


@dataclass(frozen=True)
class Source:
    """The TOML file; all other files lie in its folder or below."""

    path: Path

    def file(self, kind: str, name: str, relative: str) -> Path:
        """The path of a file that an entry names; one that is outside, missing or too large raises."""
        root = self.path.parent
        path = Path(os.path.realpath(root / relative.replace("\0", "")))  # `resolve` raises for links in a circle
        if not path.is_relative_to(root):
            raise self.error(f"the file of {kind} {name!r} lies outside {root}: {relative!r}; move it there")
        if not path.is_file():
            raise self.error(f"{kind} {name!r} needs {path}, which is not there")
        if path.stat().st_size > LARGEST_FILE:
            raise self.error(f"{path} has more than {LARGEST_FILE >> 20} MB; simplify it")
        return path

    def error(self, text: str) -> UserError:
        """An error of this file."""
        return UserError(f"{self.path}: {text}")

    def stamps(self, table: dict[str, Any]) -> Iterator[tuple]:
        """Name, time and size of the TOML file and of all files it names, to detect changes."""
        entries = [entry for kind in FIELDS for entry in table.get(kind, {}).values()]
        named = [str(entry.get(key, "")).partition(":")[0] for entry in entries for key in FILES]
        for path in (self.path, *(self.path.parent / name.replace("\0", "") for name in named if name)):
            stat = path.stat() if path.is_file() else None
            yield (str(path), stat.st_mtime_ns, stat.st_size) if stat else (str(path),)


def make_ingredient(source: Source, kind: str, name: str, entry: dict[str, Any]) -> Ingredient:
    """Check an entry's fields and read the file that it names."""
    if not NAME.fullmatch(name):
        raise source.error(f"{kind} {name!r}: a name is lower-case words, as they appear in captions")
    check_free(f"{kind}s", kind, name)
    for key in entry:
        choose(f"field of {kind} {name!r} in {source.path}", key, FIELDS[kind])
    values = {key: checked(source, name, key, value) for key, value in (FIELDS[kind] | entry).items()}
    given = [key for key in FILES if values.get(key)]
    if len(given) != 1:
        wanted = " or ".join(key for key in FILES if key in FIELDS[kind])
        raise source.error(f"{kind} {name!r} needs one {wanted}")
    if given == ["file"] and len(entry) > 1:
        raise source.error(f"animal {name!r} has its size, hover and direction in {values['file']}; set only its file")
    relative, _, function = values[given[0]].partition(":") if given == ["function"] else (values[given[0]], "", "")
    path = source.file(kind, name, relative)
    if given == ["function"] and (path.suffix != ".py" or not function):
        raise source.error(f"the function of {name!r} must be in a Python file, written file.py:name")
    called = python_function(path, function) if given == ["function"] else None
    value = {"animal": own_animal, "texture": own_texture, "background": own_background}[kind](values, path, called)
    # `file` came later than the other fields: without it in the hash, worlds of before keep their stores.
    decisive = sorted((key, its) for key, its in values.items() if key != "file")
    content = hashlib.sha256(repr((kind, name, decisive)).encode() + path.read_bytes())
    return Ingredient(name, content.hexdigest()[:16], value)


def checked(source: Source, name: str, key: str, value: object) -> str | float | list[float]:
    """A field's value, of its type and within its bounds."""
    if key in FILES:
        if not isinstance(value, str):
            raise source.error(f"{key} of {name!r} must be the name of a file, got {value!r}")
        return value
    low, high = BOUNDS[key]
    numbers = value if key == "turn" and isinstance(value, list) else [value]
    right = all(isinstance(n, int | float) and not isinstance(n, bool) and low <= n <= high for n in numbers)
    if not right or len(numbers) != (3 if key == "turn" else 1):
        what = "three angles in degrees, about x, y and z" if key == "turn" else f"a number from {low:g} to {high:g}"
        raise source.error(f"{key} of {name!r} must be {what}, got {value!r}")
    return value


def own_animal(values: dict[str, Any], path: Path, _: None) -> "Animal | MeshAnimal":
    """An animal from a mesh, or from a Python file."""
    from envs.drawing.mesh_file import read_mesh

    if values["file"]:
        return python_animal(path, BOUNDS)
    return read_mesh(path, values["size"], values["hover"], tuple(values["turn"]))


def own_texture(values: dict[str, Any], path: Path, function: Callable | None) -> "Texture | PictureTexture":
    """A texture from a picture, or from a function of noise (n, 4) to linear colours (n, 3)."""
    from envs.drawing.picture_file import PictureTexture, read_picture
    from envs.shapes.texture import Texture

    if function is None:
        return PictureTexture(read_picture(path), values["tile"], values["specular"], values["gloss"])
    noise = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    try_function(path, lambda: function(noise), (50, 3))
    return Texture(function, values["specular"], values["gloss"])


def own_background(values: dict[str, Any], path: Path, function: Callable | None) -> "Background":
    """A background from a picture, or from a function that draws along rays (see `envs.drawing.background`)."""
    from envs.drawing.background import Background, Rays
    from envs.drawing.camera import Camera
    from envs.drawing.picture_file import OWN_LIGHT, picture_background, read_picture

    if function is None:
        return picture_background(read_picture(path), values["horizon"])
    try_function(path, lambda: np.clip(function(Rays(Camera(16)), OWN_LIGHT).ambient, 0, 1), (16, 16, 3))
    return Background(OWN_LIGHT, function)
