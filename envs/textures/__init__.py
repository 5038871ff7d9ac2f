"""The textures that a world can name: one file each, and each in every pattern (envs/shapes/patterns.py)."""

from typing import TYPE_CHECKING

from menagerie.envs.catalog import load, names

if TYPE_CHECKING:
    from menagerie.envs.shapes.texture import Texture


def texture_names() -> tuple[str, ...]:
    """World names of all textures, sorted; the texture "red" is also "plain red" and "banded red"."""
    return names("textures")


def load_texture(name: str) -> "Texture":
    """The texture called `name`; raises for an unknown name, and suggests the nearest."""
    return load("textures", "texture", name)
