"""The user's folder of data, and the options by which benchmarks and sources read it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.spacy_rules import Tagger, spacy_tags
from menagerie.generators.sources.folders import Given, SearchedFolders
from menagerie.generators.sources.kept_out import KeptOut


def one_node(text: str) -> SceneGraph:
    """Make a graph without parsing: the whole text is one node."""
    return SceneGraph((text,))


@dataclass(frozen=True)
class Place:
    """Where files of benchmarks and sources are, and the options for reading them."""

    root: Path
    resolution: int = 224
    """Side of the square to which images are scaled, in pixels."""
    parse: Callable[[str], SceneGraph] = one_node
    """Makes scene graphs of texts that have none; a `CaptionParser` gets all captions of a source at once."""
    folders: Given = field(default_factory=dict)
    """Folders outside the root, all searched, by the path that they replace below it (`--images FOLDER=PATH`)."""
    squashed: bool = False
    """Whether to squash the whole image to a square; otherwise its central square is taken."""
    interpolation: str = "bicubic"
    """Name of a resampling filter of Pillow."""
    workers: int = 1
    """Number of threads that decode images."""
    allow_missing: bool = False
    """Whether to leave out records whose images are missing, and count them; otherwise a missing image raises."""
    tag: Tagger | None = spacy_tags
    """Tags a text's parts of speech, to shuffle words by. With None none are shuffled, enough to count records."""
    ensemble: bool = True
    """Whether a class of zero-shot classification has a text for each template; else one, for a plain template."""
    kept_out: KeptOut = field(default_factory=KeptOut)
    """Photographs that a source leaves out because tests show them."""
    caption: str = ""
    """Way of making captions, if a source has several (`SourceSpec.recipes`); "" takes the first."""

    def images(self, name: str) -> SearchedFolders:
        """The folder of images `name`, or the folders given in its place, with those given for paths inside it."""
        return SearchedFolders(self.root, name, self.folders)

    def path(self, name: str) -> Path:
        """The path of a file or folder: the first that exists of all at which it may be, else the first."""
        paths = self.images(name).folders
        return next((path for path in paths if path.exists()), paths[0])

    def has(self, name: str) -> bool:
        """Whether a file or folder exists, or a folder is given for a path below it."""
        return self.path(name).exists() or bool(self.below(name))

    def below(self, name: str) -> dict[str, str]:
        """The paths below a folder for which others are given, by what stands behind its name."""
        return {given.removeprefix(f"{name}/"): given for given in self.folders if given.startswith(f"{name}/")}

    def only(self, name: str, whole: bool = True) -> Path:
        """The path of a folder whose content is listed; raises if several folders are given for it, or, if it is listed
        as a `whole`, one for a path below it."""
        if len(paths := self.images(name).folders) > 1:
            raise UserError(f"--images {name} is given {len(paths)} times; what is in it is listed, so give one folder")
        if whole and (below := next(iter(self.below(name).values()), "")):
            raise UserError(f"--images {below}: what is in {name} is listed, so give all of it, --images {name}=FOLDER")
        return paths[0]

    def recipe(self, names: Sequence[str]) -> str:
        """The chosen way of making captions; raises if `names` doesn't have it."""
        return choose("caption recipe", self.caption or names[0], names)
