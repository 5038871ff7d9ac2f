"""Finds benchmarks of real photographs by name: the files of this folder that export a `BENCHMARK`.

Add one by adding a file.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import Exports
from menagerie.generators.sources.kept_out import PhotographId

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.photographs import PhotographSet, Place


@dataclass(frozen=True)
class BenchmarkSpec:
    """A benchmark: its files, where to get them, how to read them, and published results."""

    name: str
    about: str
    """One line that says what the benchmark tests."""
    files: tuple[str, ...]
    """Annotation files below the data root."""
    images: tuple[str, ...]
    """Folders of images below the data root."""
    source: str
    """Where to get the annotation files and the images."""
    licence: str
    build: Callable[["Place"], "PhotographSet"]
    """Reads the annotation files; raises for errors in them, and for missing images unless they are allowed."""
    photographs: Callable[[Path], Iterable[PhotographId]] | None
    """Yields the photographs of COCO, Visual Genome or Flickr in an annotation file, so that training leaves them out;
    None if the benchmark has images of its own."""
    one_of: tuple[str, ...] = ()
    """Alternative annotation files, of which at least one is needed."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Official number of records by group; groups of unknown size are missing."""
    sets: Mapping[str, int] = field(default_factory=dict)
    """Official number of records of groups that are optional."""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Published percentages, by model and measure."""


EXPORTS = Exports("menagerie.generators.benchmarks", Path(__file__).parent, "BENCHMARK", "benchmark")
names: Callable[[], tuple[str, ...]] = EXPORTS.names
load: Callable[[str], BenchmarkSpec] = EXPORTS.load


def chosen(named: Iterable[str]) -> list[BenchmarkSpec]:
    """The benchmarks that a command line names, or all if it names none; raises if one is named twice."""
    named = tuple(named)
    if again := next((name for name in named if named.count(name) > 1), None):
        raise UserError(f"--benchmarks names {again} twice")
    return [load(name) for name in tuple(named) or names()]
