"""The entries of a world file: a user's animals, textures and backgrounds."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from menagerie.envs.catalog import check_free
from menagerie.envs.core.errors import choose
from menagerie.envs.core.validation import SHARE, Range, Several, build_dataclass
from menagerie.envs.custom.cutouts import make_cutout
from menagerie.envs.custom.python_file import python_animal, python_function
from menagerie.envs.custom.source import FILES, HOVER, SIZE, Ingredient, WorldFile
from menagerie.envs.drawing.camera import VIEWS
from menagerie.envs.world import NAME

if TYPE_CHECKING:
    from menagerie.envs.drawing.background import Background
    from menagerie.envs.drawing.mesh_file import MeshAnimal
    from menagerie.envs.drawing.picture_file import PictureTexture
    from menagerie.envs.shapes.animal import Animal
    from menagerie.envs.shapes.texture import Texture


@dataclass(frozen=True)
class AnimalEntry:
    """The fields in a world file for an animal made from a mesh or a Python file, not from photographs."""

    mesh: str = ""
    file: str = ""
    size: Annotated[float, SIZE] = 1.4
    hover: Annotated[float, HOVER] = 0.0
    turn: Annotated[tuple[float, float, float], Range(-360.0, 360.0)] = (0, 0, 0)
    """Degrees about x, y and z."""


@dataclass(frozen=True)
class TextureEntry:
    """The fields of a texture in a world file."""

    image: str = ""
    function: str = ""
    tile: Annotated[float, Range(0.05, 10.0)] = 1.0
    specular: Annotated[float, SHARE] = 0.1
    gloss: Annotated[float, Range(1.0, 200.0)] = 10.0


@dataclass(frozen=True)
class BackgroundEntry:
    """The fields of a background in a world file."""

    image: Annotated[str | tuple[str, ...], Several(1)] = ""
    function: str = ""
    horizon: Annotated[float, Range(0.1, 0.9)] = 0.45


FORMS = {"animal": AnimalEntry, "texture": TextureEntry, "background": BackgroundEntry}
OTHERS = {"animal": ("cutouts",)}  # fields of entries that another module reads: see envs/custom/cutouts.py
MOST_PICTURES = len(VIEWS)  # of one background: one for each camera and sun


def make_ingredient(source: WorldFile, kind: str, name: str, entry: dict[str, Any]) -> Ingredient:
    """Check an entry's fields and make an ingredient from the files that it names."""
    if not NAME.fullmatch(name):
        raise source.error(f"{kind} {name!r}: a name is lower-case words, as they appear in captions")
    if kind == "animal" and "cutouts" in entry:
        return make_cutout(source, name, entry)
    known = (*FORMS[kind].__dataclass_fields__, *OTHERS.get(kind, ()))
    for key in entry:
        choose(f"field of {kind} {name!r} in {source.path}", key, known)
    check_free(f"{kind}s", name)
    values = build_dataclass(FORMS[kind], entry, f"{source.path}: {kind} {name!r}")
    given = [key for key in FILES if getattr(values, key, "")]
    if len(given) != 1:
        raise source.error(f"{kind} {name!r} needs one {' or '.join(key for key in FILES if key in known)}")
    if given == ["file"] and len(entry) > 1:
        raise source.error(f"animal {name!r} has its size, hover and direction in {entry['file']}; set only its file")
    named = getattr(values, given[0])
    if isinstance(named, tuple):
        return make_backgrounds(source, name, values, entry)
    path = source.file(kind, name, named.partition(":")[0] if given == ["function"] else named)
    value = {"animal": own_animal, "texture": own_texture, "background": own_background}[kind](values, path)
    return Ingredient(name, hash_entry(kind, name, entry, path), value)


def hash_entry(kind: str, name: str, entry: dict[str, Any], path: Path) -> str:
    """Return the digest of an entry, without `file`, and of its file. Values count as written (1 differs from 1.0),
    missing fields as defaults."""
    defaults = {item.name: item.default for item in fields(FORMS[kind]) if item.name != "file"}
    written = {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()} | entry
    decisive = sorted((key, value) for key, value in written.items() if key != "file")
    return hashlib.sha256(repr((kind, name, decisive)).encode() + path.read_bytes()).hexdigest()[:16]


def make_backgrounds(source: WorldFile, name: str, values: BackgroundEntry, entry: dict[str, Any]) -> Ingredient:
    """Make a background of several pictures, which are divided among the views."""
    from menagerie.envs.drawing.picture_file import by_view, picture_background, read_picture

    files = source.files("background", name, values.image, MOST_PICTURES)
    content = hashlib.sha256(repr(("background", name, entry.get("horizon", values.horizon))).encode())
    for path in files:
        content.update(hashlib.sha256(path.read_bytes()).digest())
    pictures = [picture_background(read_picture(path), values.horizon) for path in files]
    return Ingredient(name, content.hexdigest()[:16], by_view(pictures))


def own_animal(values: AnimalEntry, path: Path) -> "Animal | MeshAnimal":
    """Make an animal from a mesh or a Python file."""
    from menagerie.envs.drawing.mesh_file import read_mesh

    return python_animal(path) if values.file else read_mesh(path, values.size, values.hover, values.turn)


def own_texture(values: TextureEntry, path: Path) -> "Texture | PictureTexture":
    """Make a texture from a picture, or from a function of noise (n, 4) to linear colours (n, 3)."""
    from menagerie.envs.drawing.picture_file import PictureTexture, read_picture
    from menagerie.envs.shapes.texture import Texture

    if values.image:
        return PictureTexture(read_picture(path), values.tile, values.specular, values.gloss)
    noise = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    function = python_function(path, values.function, lambda called: called(noise), (50, 3))
    return Texture(function, values.specular, values.gloss)


def own_background(values: BackgroundEntry, path: Path) -> "Background":
    """Make a background from a picture, or from a function that draws along rays (see
    `menagerie.envs.drawing.background`)."""
    from menagerie.envs.drawing.background import Background, Rays
    from menagerie.envs.drawing.camera import Camera
    from menagerie.envs.drawing.picture_file import OWN_LIGHT, picture_background, read_picture

    if values.image:
        return picture_background(read_picture(path), values.horizon)

    def shown(function: Callable) -> np.ndarray:
        return np.clip(function(Rays(Camera(16)), OWN_LIGHT).ambient, 0, 1)

    return Background(OWN_LIGHT, python_function(path, values.function, shown, (16, 16, 3)))
