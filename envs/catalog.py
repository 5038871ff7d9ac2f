"""A world's animals, textures and backgrounds by name: constants of files in envs/, or of a user's world file.

The file `envs/animals/giant_tortoise.py` has the animal "giant tortoise" as its `ANIMAL`. Two that differ little can
share a file: `TEXTURE_BLUE` is the texture "blue", in whichever file it is.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.plugins import Exports
from menagerie.envs.shapes.patterns import PATTERNS, lay_over
from menagerie.envs.world import TEXTURES

if TYPE_CHECKING:
    from menagerie.envs.drawing.background import Background
    from menagerie.envs.drawing.cutout import Cutout
    from menagerie.envs.drawing.mesh_file import MeshAnimal
    from menagerie.envs.drawing.picture_file import PictureTexture
    from menagerie.envs.shapes.animal import Animal
    from menagerie.envs.shapes.texture import Texture

    OwnIngredient = Animal | MeshAnimal | Cutout | Texture | PictureTexture | Background

_own: dict[tuple[str, str], tuple[str, "OwnIngredient"]] = {}  # (folder, name) -> (digest, ingredient)


@cache
def shipped_ingredients(folder: str) -> Exports:
    """Return the ingredients that are constants of the files in `envs/<folder>`; imports none of them."""
    kind = folder.removesuffix("s")
    return Exports(f"menagerie.envs.{folder}", Path(__file__).parent / folder, kind.upper(), kind, gap=" ")


@cache  # an atlas entry loads its ingredients by name
def names(folder: str) -> tuple[str, ...]:
    """Return the world names of all built-in ingredients of a folder, sorted; each texture is also listed in every
    pattern."""
    found = shipped_ingredients(folder).names()
    patterns = PATTERNS if folder == "textures" else ()
    return tuple(sorted([*found, *(f"{pattern} {name}" for pattern in patterns for name in found)]))


def check_free(folder: str, name: str) -> None:
    """Raise if `name` is built in. Of textures only the first four (`TEXTURES`) count, because a user's world may be
    older than the others and keeps its own texture of such a name (`World.replaced`)."""
    if name in names(folder) and (folder != "textures" or name in TEXTURES):
        raise UserError(
            f"{folder.removesuffix('s')} {name!r} is built in; list it by its name in {folder}, or give your own "
            "another name"
        )


def register(folder: str, name: str, digest: str, ingredient: "OwnIngredient") -> None:
    """Register a user's ingredient in this process; raises if the name is registered with another digest."""
    known, _ = _own.setdefault((folder, name), (digest, ingredient))
    if known != digest:
        raise UserError(
            f"the {folder.removesuffix('s')} {name!r} was read before and has changed since: start the command again "
            "if its file was edited meanwhile, or rename one if two worlds use this name for different ones"
        )


def load(folder: str, name: str) -> Any:
    """Return the registered ingredient, else the built-in one; raises for an unknown name, and suggests the nearest.
    "banded red" is the texture "red" in the pattern `banded`."""
    if (folder, name) in _own:
        return _own[folder, name][1]
    return _built_in(folder, choose(folder.removesuffix("s"), name, names(folder)))


@cache
def _built_in(folder: str, name: str) -> Any:
    if folder == "textures" and name not in shipped_ingredients(folder).names():
        pattern, _, plain = name.partition(" ")
        texture = shipped_ingredients(folder).load(plain)
        return replace(texture, pattern=lay_over(texture.pattern, pattern))
    return shipped_ingredients(folder).load(name)


def load_animal(name: str) -> "Animal | MeshAnimal":
    """Return the animal called `name`."""
    return load("animals", name)


def load_texture(name: str) -> "Texture | PictureTexture":
    """Return the texture called `name`; the texture "red" is also "plain red" and "banded red"."""
    return load("textures", name)


def load_background(name: str) -> "Background":
    """Return the background called `name`."""
    return load("backgrounds", name)
