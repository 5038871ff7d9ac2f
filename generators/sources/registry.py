"""Sources of training data by name, the locations of their files, and a quick check whether the files are complete."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import choose
from menagerie.envs.core.plugins import Exports
from menagerie.envs.core.reading import open_file
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.nearby import found_instead

if TYPE_CHECKING:
    from menagerie.generators.sources.photographs import Photographs


def one_node(text: str) -> SceneGraph:
    """Make a graph without parsing: the whole text is one node."""
    return SceneGraph((text,))


@dataclass(frozen=True)
class SourcePlace:
    """A user's folder of data, and the options for reading it."""

    root: Path
    resolution: int
    """Side of the square to which images are scaled, in pixels."""
    parse: Callable[[str], SceneGraph] = one_node
    """Makes scene graphs of captions that have none; a `CaptionParser` gets all captions at once."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Folders outside the root; a key is the path below the root that its folder replaces (`--images FOLDER=PATH`)."""
    kept_out: KeptOut = field(default_factory=KeptOut)
    """Photographs to leave out because tests show them."""
    caption: str = ""
    """Way of making captions, if a source has several (`SourceSpec.recipes`); "" takes the first."""

    def path(self, name: str) -> Path:
        """The path of a file or folder: below the root, or in one of `folders`.

        The root may be a data set's own folder: then "coco/train2017" is "train2017" in the root.
        """
        whole = PurePosixPath(name)
        place, without_set = located(name, self.root, self.folders), self.root.joinpath(*whole.parts[1:])
        is_own = len(whole.parts) > 1 and not (self.root / whole.parts[0]).exists() and without_set.exists()
        return without_set if is_own and place == self.root / name else place

    def recipe(self, names: Sequence[str]) -> str:
        """The chosen way of making captions; raises if `names` doesn't have it."""
        return choose("caption recipe", self.caption or names[0], names)


def located(name: str, root: Path, folders: Mapping[str, Path]) -> Path:
    """The path of a file or folder below a data root; a path inside one of `folders` is looked up there."""
    part, below = given_above(name, folders)
    return folders[part] / below if part else root / name


def given_above(name: str, folders: Container[str]) -> tuple[str, PurePosixPath]:
    """The name among `folders` whose folder contains `name`, and the rest of the path; "" if there is none."""
    whole = PurePosixPath(name)
    part = next((str(part) for part in (whole, *whole.parents) if str(part) in folders), "")
    return part, whole.relative_to(part)


@dataclass(frozen=True)
class SourceSpec:
    """A kind of training data; `build` makes it, a `menagerie.generators.captioned.Captioned`, from options."""

    name: str
    about: str
    build: Callable[..., Any]
    open: Callable[["SourcePlace"], "Photographs"] | None = None
    """Opens the data in a folder; None if the source isn't made of photographs."""
    files: tuple[str, ...] = ()
    """Annotation files below the data root."""
    images: tuple[str, ...] = ()
    """Folders below the data root that may be given elsewhere (`SourcePlace.folders`)."""
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
load: Callable[[str], SourceSpec] = EXPORTS.load


TAIL = 64  # bytes at the end of a file
ENDS = (b"]", b"}")


class SourceState(NamedTuple):
    """The state of a source's files on disk."""

    name: str
    complete: bool
    problem: str
    """What is missing or obviously wrong; empty if nothing is."""
    get: str
    licence: str


def state(spec: SourceSpec, place: SourcePlace) -> SourceState:
    """Whether a source's files and folders exist and look complete, judged by file ends and numbers of files.

    It takes under a second because no file is read whole: opening the source may still find faults, such as missing
    images.
    """
    problem = "; ".join(problems(spec, place))
    return SourceState(spec.name, not problem, problem, spec.get, spec.licence)


def problems(spec: SourceSpec, place: SourcePlace) -> Iterator[str]:
    """Yield everything that is missing or obviously wrong."""
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
    """Yield problems of folders of images. At least one must have images; those in `counts` that have any must have the
    official number."""
    folders = [place.path(folder) for folder in spec.image_folders]
    if not any(map(files_in, folders)):
        yield f"there are no images in {' or '.join(map(str, folders))}"
    for folder, count in spec.counts:
        found = len(files_in(place.path(folder)))
        if 0 < found != count:
            yield f"{place.path(folder)} has {found} files, not {count}"


def is_torn(path: Path) -> bool:
    """Whether a JSON file is cut short, judged by its last bytes."""
    with open_file(path) as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return not file.read().rstrip().endswith(ENDS)
