"""The backgrounds that a world can name: one file each, loaded by name."""

from typing import TYPE_CHECKING

from menagerie.envs.catalog import load, names

if TYPE_CHECKING:
    from menagerie.envs.drawing.background import Background


def background_names() -> tuple[str, ...]:
    """World names of all backgrounds, sorted ("a_b.py" is "a b")."""
    return names("backgrounds")


def load_background(name: str) -> "Background":
    """The background called `name`; raises for an unknown name, and suggests the nearest."""
    return load("backgrounds", "background", name)
