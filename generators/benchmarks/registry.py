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
    """A benchmark: what it takes, where that comes from, and what papers report of it."""

    name: str
    about: str
    """A line that says what the benchmark tests."""
    files: tuple[str, ...]
    """Annotation files below the data root."""
    images: tuple[str, ...]
    """Folders of images below the data root."""
    source: str
    """A text that says where to get the annotation files and the images."""
    licence: str
    build: Callable[["Place"], "PhotographSet"]
    """Reads the annotation files; raises for what is wrong in them, and for missing images unless they are allowed."""
    photographs: Callable[[Path], Iterable[PhotographId]] | None
    """The photographs of COCO, Visual Genome or Flickr in one of its annotation files, which training leaves out; None
    where its images are its own."""
    one_of: tuple[str, ...] = ()
    """Annotation files of which one is enough."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The official number of records of each group; of groups without one it isn't known for sure."""
    sets: Mapping[str, int] = field(default_factory=dict)
    """The same of groups of which any may be there, and others not."""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Percentages that papers report, by model and measure."""


EXPORTS = Exports("menagerie.generators.benchmarks", Path(__file__).parent, "BENCHMARK", "benchmark")
names: Callable[[], tuple[str, ...]] = EXPORTS.names
load: Callable[[str], BenchmarkSpec] = EXPORTS.load


def chosen(named: Iterable[str]) -> list[BenchmarkSpec]:
    """The benchmarks of a command line: those that it names, or all; one that is named twice raises."""
    named = tuple(named)
    if again := next((name for name in named if named.count(name) > 1), None):
        raise UserError(f"--benchmarks names {again} twice")
    return [load(name) for name in tuple(named) or names()]
