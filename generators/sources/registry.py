"""Finds training sources by name: the files of this folder that export a `SOURCE`. Add one by adding a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.plugins import Exports

if TYPE_CHECKING:
    from menagerie.generators.sources.photographs import Photographs
    from menagerie.generators.sources.place import SourcePlace


@dataclass(frozen=True)
class SourceSpec:
    """A kind of training data: `build` takes its options and gives a `menagerie.generators.captioned.Captioned`."""

    name: str
    about: str
    build: Callable[..., Any]
    open: Callable[["SourcePlace"], "Photographs"] | None = None
    """Opens it from a folder of data; None where it isn't one of photographs."""
    files: tuple[str, ...] = ()
    """Annotation files below the data root."""
    images: tuple[str, ...] = ()
    """Folders below the data root that may lie elsewhere (`SourcePlace.folders`)."""
    image_folders: tuple[str, ...] = ()
    """Those of them of which one at least has images."""
    recipes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"": ()})
    """Ways to make captions, the usual one first, each with further files, of which it needs one."""
    get: str = ""
    """Where to get its files."""
    licence: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    """The official number of images of folders."""


EXPORTS = Exports("menagerie.generators.sources", Path(__file__).parent, "SOURCE", "source", gap=" ")


def names() -> tuple[str, ...]:
    """Names of all sources, sorted; imports none of them."""
    return EXPORTS.names()


def load(name: str) -> SourceSpec:
    """What the file of that name exports."""
    return EXPORTS.load(name)
