"""Sources of training data by name, the locations of their files, and a quick check whether the files are complete."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from menagerie.envs.core.plugins import Exports
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.place import Place

if TYPE_CHECKING:
    from menagerie.generators.sources.photographs import Photographs


@dataclass(frozen=True)
class SourceSpec:
    """Training data made of photographs."""

    name: str
    open: Callable[[Place], "Photographs"]
    """Opens the data in a folder."""
    files: tuple[str, ...] = ()
    """Annotation files below the data root."""
    images: tuple[str, ...] = ()
    """Folders below the data root that may be given elsewhere (`Place.folders`)."""
    image_folders: tuple[str, ...] = ()
    """The folders among `images` at least one of which must hold images."""
    recipes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"": ()})
    """Ways of making captions, the default first, each with alternative annotation files, one of which must exist."""
    get: str = ""
    """Text that says where to get the files."""
    licence: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    """Official number of images by folder."""


EXPORTS = Exports("menagerie.generators.sources", Path(__file__).parent, "SOURCE", "source", gap=" ")
names: Callable[[], tuple[str, ...]] = EXPORTS.names
load_source: Callable[[str], SourceSpec] = EXPORTS.load


class State(NamedTuple):
    """The state of the files of a source, or of a benchmark, on disk."""

    name: str
    problem: str
    """What is missing or obviously wrong; empty if nothing is."""
    get: str
    licence: str
    records: int = 0
    """Records of a benchmark that could be read."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.problem


def state(spec: SourceSpec, place: Place) -> State:
    """Whether a source's files and folders exist and look complete, judged by numbers of files. No file is read whole,
    so opening the source may still find faults, such as a torn file or missing images."""
    problem = "; ".join(problems(spec, place))
    return State(spec.name, problem, spec.get, spec.licence)


def problems(spec: SourceSpec, place: Place) -> Iterator[str]:
    """Yield everything that is missing or obviously wrong. At least one folder of images must have some; those in
    `counts` that have any must have the official number."""
    yield from (f"there is no {file}" for file in map(place.path, spec.files) if not file.is_file())
    alternatives = [place.path(file) for file in spec.recipes[place.recipe(tuple(spec.recipes))]]
    if alternatives and not any(file.is_file() for file in alternatives):
        yield f"there is none of {', '.join(map(str, alternatives))}"
    folders = [place.path(folder) for folder in spec.image_folders]
    if not any(map(files_in, folders)):
        yield f"there are no images in {' or '.join(map(str, folders))}"
    for folder, count in spec.counts:
        found = len(files_in(place.path(folder)))
        if 0 < found != count:
            yield f"{place.path(folder)} has {found} files, not {count}"
