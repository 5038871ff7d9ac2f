"""The textures that a world can name: one file each, and each in every pattern (envs/shapes/patterns.py)."""

from typing import TYPE_CHECKING

from menagerie.envs.catalog import load, names

if TYPE_CHECKING:
    from menagerie.envs.shapes.texture import Texture


def texture_names() -> tuple[str, ...]:
    """World names of all textures, sorted: "red", "plain red", "banded red"."""
    return names("textures")


def load_texture(name: str) -> "Texture":
    """The texture called `name`; an unknown name raises with the nearest one."""
    return load("textures", "texture", name)
