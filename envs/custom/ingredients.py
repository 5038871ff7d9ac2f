"""One entry of a world file: a user's animal, texture or background."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from menagerie.envs.catalog import check_free
from menagerie.envs.core.errors import choose
from menagerie.envs.custom.cutouts import is_cutout, make_cutout
from menagerie.envs.custom.python_file import python_animal, python_function, try_function
from menagerie.envs.custom.source import BOUNDS, FILES, Ingredient, Source, check_upright, within
from menagerie.envs.drawing.view import VIEWS
from menagerie.envs.groups import NAME

if TYPE_CHECKING:
    from menagerie.envs.drawing.background import Background
    from menagerie.envs.drawing.mesh_file import MeshAnimal
    from menagerie.envs.drawing.picture_file import PictureTexture
    from menagerie.envs.shapes.animal import Animal
    from menagerie.envs.shapes.texture import Texture

# The fields of an entry with their defaults.
FIELDS: dict[str, dict[str, Any]] = {
    "animal": {"mesh": "", "file": "", "size": 1.4, "hover": 0.0, "turn": [0, 0, 0]},
    "texture": {"image": "", "function": "", "tile": 1.0, "specular": 0.1, "gloss": 10.0},
    "background": {"image": "", "function": "", "horizon": 0.45},
}
OTHERS = {"animal": ("cutouts",)}  # fields of entries of another kind: see envs/custom/cutouts.py
MOST_PICTURES = len(VIEWS)  # of one background: each camera and sun has one


def make_ingredient(source: Source, kind: str, name: str, entry: dict[str, Any]) -> Ingredient:
    """Check an entry's fields and read the file that it names."""
    if not NAME.fullmatch(name):
        raise source.error(f"{kind} {name!r}: a name is lower-case words, as they appear in captions")
    if is_cutout(kind, entry):
        return make_cutout(source, name, entry)
    for key in entry:
        choose(f"field of {kind} {name!r} in {source.path}", key, (*FIELDS[kind], *OTHERS.get(kind, ())))
    check_free(f"{kind}s", kind, name)
    if kind == "background" and isinstance(entry.get("image"), list):
        return make_backgrounds(source, name, entry)
    values = {key: checked(source, name, key, value) for key, value in (FIELDS[kind] | entry).items()}
    given = [key for key in FILES if values.get(key)]
    if len(given) != 1:
        wanted = " or ".join((*(key for key in FILES if key in FIELDS[kind]), *OTHERS.get(kind, ())))
        raise source.error(f"{kind} {name!r} needs one {wanted}")
    if given == ["file"] and len(entry) > 1:
        raise source.error(f"animal {name!r} has its size, hover and direction in {values['file']}; set only its file")
    relative, _, function = values[given[0]].partition(":") if given == ["function"] else (values[given[0]], "", "")
    path = source.file(kind, name, relative)
    if given == ["function"] and (path.suffix != ".py" or not function):
        raise source.error(f"the function of {name!r} must be in a Python file, written file.py:name")
    if given == ["image"]:
        check_upright([path])
    called = python_function(path, function) if given == ["function"] else None
    value = {"animal": own_animal, "texture": own_texture, "background": own_background}[kind](values, path, called)
    # `file` came later than the other fields: without it in the hash, worlds of before keep their stores.
    decisive = sorted((key, its) for key, its in values.items() if key != "file")
    content = hashlib.sha256(repr((kind, name, decisive)).encode() + path.read_bytes())
    return Ingredient(name, content.hexdigest()[:16], value)


def make_backgrounds(source: Source, name: str, entry: dict[str, Any]) -> Ingredient:
    """A background of several pictures, which views share out."""
    from menagerie.envs.drawing.picture_file import picture_background, read_picture
    from menagerie.envs.photographs.backdrops import by_view
    from menagerie.envs.photographs.identity import sources

    for key in entry:
        choose(f"field of background {name!r} in {source.path}", key, ("image", "horizon"))
    files = source.files("background", name, "image", entry["image"], MOST_PICTURES)
    check_upright(files)
    horizon = source.number(name, "horizon", entry.get("horizon", FIELDS["background"]["horizon"]))
    content = hashlib.sha256(repr(("background", sources(), name, horizon)).encode())
    for path in files:
        content.update(hashlib.sha256(path.read_bytes()).digest())
    pictures = [picture_background(read_picture(path), horizon) for path in files]
    return Ingredient(name, content.hexdigest()[:16], by_view(pictures))


def checked(source: Source, name: str, key: str, value: object) -> str | float | list[float]:
    """A field's value, of its type and within its bounds."""
    if key in FILES:
        if not isinstance(value, str):
            raise source.error(f"{key} of {name!r} must be the name of a file, got {value!r}")
        return value
    if key != "turn":
        return source.number(name, key, value)
    if not isinstance(value, list) or len(value) != 3 or not all(within(key, angle) for angle in value):
        raise source.error(f"turn of {name!r} must be three angles in degrees, about x, y and z, got {value!r}")
    return value


def own_animal(values: dict[str, Any], path: Path, _: None) -> "Animal | MeshAnimal":
    """An animal from a mesh, or from a Python file."""
    from menagerie.envs.drawing.mesh_file import read_mesh

    if values["file"]:
        return python_animal(path, BOUNDS)
    return read_mesh(path, values["size"], values["hover"], tuple(values["turn"]))


def own_texture(values: dict[str, Any], path: Path, function: Callable | None) -> "Texture | PictureTexture":
    """A texture from a picture, or from a function of noise (n, 4) to linear colours (n, 3)."""
    from menagerie.envs.drawing.picture_file import PictureTexture, read_picture
    from menagerie.envs.shapes.texture import Texture

    if function is None:
        return PictureTexture(read_picture(path), values["tile"], values["specular"], values["gloss"])
    noise = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    try_function(path, lambda: function(noise), (50, 3))
    return Texture(function, values["specular"], values["gloss"])


def own_background(values: dict[str, Any], path: Path, function: Callable | None) -> "Background":
    """A background from a picture, or from a function that draws along rays (see
    `menagerie.envs.drawing.background`)."""
    from menagerie.envs.drawing.background import Background, Rays
    from menagerie.envs.drawing.camera import Camera
    from menagerie.envs.drawing.picture_file import OWN_LIGHT, picture_background, read_picture

    if function is None:
        return picture_background(read_picture(path), values["horizon"])
    try_function(path, lambda: np.clip(function(Rays(Camera(16)), OWN_LIGHT).ambient, 0, 1), (16, 16, 3))
    return Background(OWN_LIGHT, function)
