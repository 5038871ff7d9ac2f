"""Sources of training data by name, and which of them are complete on disk, without reading what is in their files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.exports import Exports
from menagerie.envs.core.reading import open_file
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.nearby import found_instead
from menagerie.generators.sources.place import SourcePlace

if TYPE_CHECKING:
    from menagerie.generators.sources.photographs import Photographs


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


TAIL = 64  # bytes at the end of a file
ENDS = (b"]", b"}")


class SourceState(NamedTuple):
    """What is known of a source."""

    name: str
    complete: bool
    problem: str
    """What is missing or plainly wrong; empty where nothing is."""
    get: str
    licence: str


def state(spec: SourceSpec, place: SourcePlace) -> SourceState:
    """Whether a source's files and folders are there, whole as far as their ends and numbers show.

    Takes under a second, so it reads none of them: opening may still find faults, such as images that are missing.
    """
    problem = "; ".join(problems(spec, place))
    return SourceState(spec.name, not problem, problem, spec.get, spec.licence)


def problems(spec: SourceSpec, place: SourcePlace) -> Iterator[str]:
    """Whatever is missing or plainly wrong."""
    if spec.open is None:
        yield "it isn't opened from a folder of data"
        return
    wanted = [place.path(file) for file in spec.files]
    alternatives = [place.path(file) for file in spec.recipes[place.recipe(tuple(spec.recipes))]]
    lacking = [file for file in wanted if not file.is_file()]
    yield from (f"there is no {file}" for file in lacking)
    if alternatives and not any(file.is_file() for file in alternatives):
        yield f"there is none of {', '.join(map(str, alternatives))}"
        lacking += alternatives
    yield from list(filter(None, map(found_instead, lacking)))[:1]
    yield from (f"{file} ends in the middle" for file in (*wanted, *alternatives) if file.is_file() and is_torn(file))
    yield from folder_problems(spec, place)


def folder_problems(spec: SourceSpec, place: SourcePlace) -> Iterator[str]:
    """Folders of images of which at least one must be there, with the official number of images."""
    folders = [place.path(folder) for folder in spec.image_folders]
    if not any(map(files_in, folders)):
        yield f"there are no images in {' or '.join(map(str, folders))}"
    for folder, count in spec.counts:
        found = len(files_in(place.path(folder)))
        if 0 < found != count:
            yield f"{place.path(folder)} has {found} files, not {count}"


def is_torn(path: Path) -> bool:
    """Whether a JSON file doesn't end as one ends."""
    with open_file(path) as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return not file.read().rstrip().endswith(ENDS)
