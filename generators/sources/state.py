"""Which training sources are complete on disk, found out without reading what is in their files."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.reading import open_file
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.instead import found_instead
from menagerie.generators.sources.place import SourcePlace
from menagerie.generators.sources.registry import SourceSpec

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
