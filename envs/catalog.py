"""Finds a world's ingredients by name: one Python file each, or what a world of the user's own defines."""

from importlib import import_module
from pathlib import Path
from typing import Any

from envs.common.errors import UserError, choose

_own: dict[tuple[str, str], tuple[str, Any]] = {}


def names(folder: str) -> tuple[str, ...]:
    """World names of the files in `envs/<folder>`, sorted; imports none of them."""
    files = (Path(__file__).parent / folder).glob("[!_]*.py")
    return tuple(sorted(file.stem.replace("_", " ") for file in files))


def register(folder: str, kind: str, name: str, digest: str, ingredient: Any) -> None:
    """Make an ingredient of the user's own known in this process, under a name that is still free."""
    if name in names(folder):
        raise UserError(f"{kind} {name!r} is built in; give your own another name")
    known, _ = _own.setdefault((folder, name), (digest, ingredient))
    if known != digest:
        raise UserError(
            f"the {kind} {name!r} was read before and is another now: start the command again if its file was "
            "edited meanwhile, or rename one if two worlds call different ones so"
        )


def load(folder: str, kind: str, name: str) -> Any:
    """What the file of that name exports under its kind in capitals ("animal": `ANIMAL`)."""
    if (folder, name) in _own:
        return _own[folder, name][1]
    module = choose(kind, name, names(folder)).replace(" ", "_")
    return getattr(import_module(f"envs.{folder}.{module}"), kind.upper())
