"""Finds training sources by name: the files of this folder that export a `SOURCE`. Add one by adding a file."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from envs.common.errors import choose


@dataclass(frozen=True)
class SourceSpec:
    """A kind of training data: `build` takes its options and gives a `generators.captioned.Captioned`."""

    name: str
    about: str
    build: Callable[..., Any]


def names() -> tuple[str, ...]:
    """Names of all sources, sorted; imports none of them."""
    files = Path(__file__).parent.glob("[!_]*.py")
    stems = (file.stem for file in files if "\nSOURCE = " in file.read_text(encoding="utf-8"))
    return tuple(sorted(stem.replace("_", " ") for stem in stems))


def load(name: str) -> SourceSpec:
    """What the file of that name exports."""
    module = choose("source", name, names()).replace(" ", "_")
    return import_module(f"generators.sources.{module}").SOURCE
