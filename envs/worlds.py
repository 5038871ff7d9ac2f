"""Worlds by name, or from a user's TOML file."""

from pathlib import Path

from menagerie.envs.core.errors import choose
from menagerie.envs.world import WORLDS, World


def load_world(name: str) -> World:
    """The world called `name`, or the one in a TOML file; an unknown name raises with the nearest one."""
    if name.endswith(".toml"):
        from menagerie.envs.custom.world_file import load_own_world  # late: it imports the renderer

        return load_own_world(Path(name))
    return WORLDS[choose("world", name, WORLDS)]
