"""The files that a world file names: where they may lie, and how large they may be."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import path_inside
from menagerie.envs.core.validation import Range

if TYPE_CHECKING:
    from menagerie.envs.catalog import OwnIngredient

SIZE, HOVER = Range(0.1, 3.0), Range(0.0, 1.0)  # of an animal, metres
LARGEST = 64 << 20  # bytes
# Fields of entries that name files: one file, or a list.
FILES = ("mesh", "file", "image", "function", "cutouts")


class Ingredient(NamedTuple):
    """The object that an entry defines, and a hash of the entry and its files."""

    name: str
    digest: str
    value: "OwnIngredient"
    is_cutout: bool = False


@dataclass(frozen=True)
class WorldFile:
    """A world's TOML file; all files that it names lie in its folder or below."""

    path: Path

    def file(self, kind: str, name: str, relative: str) -> Path:
        """Return the path of a file that an entry names; raises if it is outside the folder, missing or too large."""
        try:
            path = path_inside(self.path.parent, relative)
        except UserError as error:
            raise self.error(f"{kind} {name!r}: {error}") from error
        if not path.is_file():
            raise self.error(f"{kind} {name!r} needs {path}, which is not there")
        if path.stat().st_size > LARGEST:
            raise self.error(f"{path} has more than {LARGEST >> 20} MB; simplify it")
        return path

    def files(self, kind: str, name: str, relative: Sequence[str], most: int) -> list[Path]:
        """Return the paths of the files in a list; raises if there are more than `most`."""
        if len(relative) > most:
            raise self.error(f"{kind} {name!r} has {len(relative)} files; it may have {most}")
        return [self.file(kind, name, item) for item in relative]

    def error(self, text: str) -> UserError:
        """Make an error that names this TOML file."""
        return UserError(f"{self.path}: {text}")

    def stamps(self, entries: Iterable[dict[str, Any]]) -> Iterator[tuple]:
        """Yield name, time and size of the TOML file and of all files that its entries name, by which changes are
        detected."""
        named = [name for entry in entries for key in FILES for name in file_names_in(entry.get(key, ""))]
        for path in (self.path, *(self.path.parent / name.replace("\0", "") for name in named if name)):
            stat = path.stat() if path.is_file() else None
            yield (str(path), stat.st_mtime_ns, stat.st_size) if stat else (str(path),)


def file_names_in(value: object) -> list[str]:
    """Return the files that a field names, as a list. The field's value is a list of files, or one file, perhaps with a
    function (file.py:function)."""
    return [str(item).partition(":")[0] for item in (value if isinstance(value, list) else [value])]
