"""A world's animals, textures and backgrounds by name: one Python file each, or registered by a user's world file."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.plugins import exported
from menagerie.envs.shapes.patterns import PATTERNS, over
from menagerie.envs.world import TEXTURES

if TYPE_CHECKING:
    from menagerie.envs.drawing.background import Background
    from menagerie.envs.drawing.mesh_file import MeshAnimal
    from menagerie.envs.drawing.picture_file import PictureTexture
    from menagerie.envs.shapes.animal import Animal
    from menagerie.envs.shapes.texture import Texture

    OwnIngredient = Animal | MeshAnimal | Texture | PictureTexture | Background

_own: dict[tuple[str, str], tuple[str, "OwnIngredient"]] = {}  # (folder, name) -> (digest, ingredient)


@cache
def files(folder: str) -> tuple[str, ...]:
    """Return the world names of the files in `envs/<folder>`, sorted ("a_b.py" is "a b"); imports none of them."""
    found = (Path(__file__).parent / folder).glob("[!_.]*.py")
    return tuple(sorted(file.stem.replace("_", " ") for file in found))


@cache  # an atlas entry loads its ingredients by name
def names(folder: str) -> tuple[str, ...]:
    """Return the world names of all built-in ingredients of a folder, sorted; each texture is also listed in every
    pattern."""
    found = files(folder)
    patterns = PATTERNS if folder == "textures" else ()
    return tuple(sorted([*found, *(f"{pattern} {name}" for pattern in patterns for name in found)]))


def check_free(folder: str, kind: str, name: str) -> None:
    """Raise if `name` is built in. Of textures only the first four (`TEXTURES`) count, because a user's world may be
    older than the others and keeps its own texture of such a name (`World.replaced`)."""
    if name in names(folder) and (folder != "textures" or name in TEXTURES):
        raise UserError(f"{kind} {name!r} is built in; list it by its name in {folder}, or give your own another name")


def register(folder: str, kind: str, name: str, digest: str, ingredient: "OwnIngredient") -> None:
    """Register a user's ingredient in this process; raises if the name is registered with another digest."""
    known, _ = _own.setdefault((folder, name), (digest, ingredient))
    if known != digest:
        raise UserError(
            f"the {kind} {name!r} was read before and has changed since: start the command again if its file was "
            "edited meanwhile, or rename one if two worlds use this name for different ones"
        )


def load(folder: str, kind: str, name: str) -> Any:
    """Return the registered ingredient, else the constant named after its kind (`ANIMAL`) in the file of that name.
    "banded red" is the texture in the file `red`, in the pattern `banded`."""
    if (folder, name) in _own:
        return _own[folder, name][1]
    chosen = choose(kind, name, names(folder))
    if folder == "textures" and chosen not in files(folder):
        pattern, _, plain = chosen.partition(" ")
        texture = imported(folder, kind, plain)
        return replace(texture, pattern=over(texture.pattern, pattern))
    return imported(folder, kind, chosen)


def imported(folder: str, kind: str, name: str) -> Any:
    """Import the constant that is named after `kind` from the file `name` in `envs/<folder>`."""
    return exported(f"menagerie.envs.{folder}.{name.replace(' ', '_')}", kind.upper())
