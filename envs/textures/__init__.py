"""The textures that a world can name: one file each, loaded by name."""

from typing import TYPE_CHECKING

from menagerie.envs.catalog import load, names

if TYPE_CHECKING:
    from menagerie.envs.shapes.texture import Texture


def texture_names() -> tuple[str, ...]:
    """World names of all textures, sorted ("a_b.py" is "a b")."""
    return names("textures")


def load_texture(name: str) -> "Texture":
    """The texture called `name`; an unknown name raises with the nearest one."""
    return load("textures", "texture", name)
