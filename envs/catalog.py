"""Finds a world's ingredients: one Python file each, found by its name."""

from importlib import import_module
from pathlib import Path
from typing import Any

from envs.errors import choose


def names(folder: str) -> tuple[str, ...]:
    """World names of the files in `envs/<folder>`, sorted; imports none of them."""
    files = (Path(__file__).parent / folder).glob("[!_]*.py")
    return tuple(sorted(file.stem.replace("_", " ") for file in files))


def load(folder: str, kind: str, name: str) -> Any:
    """What the file of that name exports under its kind in capitals ("animal": `ANIMAL`)."""
    module = choose(kind, name, names(folder)).replace(" ", "_")
    return getattr(import_module(f"envs.{folder}.{module}"), kind.upper())
