"""Where the files of training sources are, and how they are read."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from menagerie.envs.core.errors import choose
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.sources.kept_out import KeptOut


def one_node(text: str) -> SceneGraph:
    """The graph of a caption that nothing parses: all of it is one node."""
    return SceneGraph((text,))


@dataclass(frozen=True)
class SourcePlace:
    """A folder of somebody's data, and what becomes of it."""

    root: Path
    resolution: int
    """Side of images as they are read, in pixels."""
    parse: Callable[[str], SceneGraph] = one_node
    """Makes scene graphs of captions that have none; a `CaptionParser` gets all of them at once."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Folders that aren't below the root, by the path that they would have there: `--images FOLDER=PATH`."""
    kept_out: KeptOut = field(default_factory=KeptOut)
    """Photographs that are left out, because tests have them."""
    caption: str = ""
    """How captions are made where a source knows several ways (`SourceSpec.recipes`); "" takes its first."""

    def path(self, name: str) -> Path:
        """A file or folder below the root, or where it is instead.

        The root may be a data set's own folder: then "coco/train2017" is its "train2017".
        """
        whole = PurePosixPath(name)
        place, without_set = located(name, self.root, self.folders), self.root.joinpath(*whole.parts[1:])
        is_own = len(whole.parts) > 1 and not (self.root / whole.parts[0]).exists() and without_set.exists()
        return without_set if is_own and place == self.root / name else place

    def recipe(self, names: Sequence[str]) -> str:
        """The way of making captions, among those that a source knows; raises for another."""
        return choose("caption recipe", self.caption or names[0], names)


def located(name: str, root: Path, folders: Mapping[str, Path]) -> Path:
    """A file or folder below a data root, or where it is instead: a folder of `folders` stands for all below it."""
    part, below = given_above(name, folders)
    return folders[part] / below if part else root / name


def given_above(name: str, folders: Container[str]) -> tuple[str, PurePosixPath]:
    """The one of `folders` that has the file or folder `name`, and its path there; "" where none has."""
    whole = PurePosixPath(name)
    part = next((str(part) for part in (whole, *whole.parents) if str(part) in folders), "")
    return part, whole.relative_to(part)
