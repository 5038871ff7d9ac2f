"""Files below a folder of somebody's data: whatever a data file names stays below it.

One folder is searched, or others that were given for it or for a folder in it.
"""

import filecmp
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_litter


def inside(root: Path, name: str) -> Path:
    """The path of the file `name` below `root`, a resolved path; raises where it would lead elsewhere."""
    relative = Path(name)
    try:
        path = (root / relative).resolve()
    except (OSError, ValueError, RuntimeError):  # a circle of links, no name of a file
        path = None
    if path is None or relative.is_absolute() or ".." in relative.parts or not path.is_relative_to(root):
        raise UserError(f"{name!r} leads out of the image folder {root}; do not trust the file that names it")
    return path


def existing(root: Path, names: Iterable[str]) -> set[str]:
    """Choose the `names` that are files below `root`, a resolved path; raises for a name that leads elsewhere.

    Folders are listed, each once: to follow every path by itself takes ten times as long.
    """
    folders = defaultdict(list)
    for name in names:
        folders[os.path.split(name)[0]].append(name)
    there = set()
    for folder, files in folders.items():
        inside(root, files[0])  # whose error names the file
        plain = file_names_in(inside(root, folder), links=False)
        there |= {n for n in files if os.path.split(n)[1] in plain or os.path.isfile(inside(root, n))}
    return there


def files_in(folder: Path) -> frozenset[str]:
    """The names of the files in a folder but what operating systems leave; none where there is no such folder."""
    return frozenset(name for name in file_names_in(folder, links=True) if not is_litter(name))


def file_names_in(folder: Path, links: bool) -> frozenset[str]:
    """The names of the files in a folder, also of `links` to files or not; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=links))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


# Folders that were given in place of others, by the path that they would have below a data root: all are searched.
Given = Mapping[str, tuple[Path, ...]]
ITSELF = "."


class Located(NamedTuple):
    """A file of a folder."""

    folder: Path
    file: str
    """The path of the file below the folder."""

    @property
    def path(self) -> Path:
        """The path of the file; raises if that isn't below the folder."""
        return inside(self.folder, self.file)


@dataclass(frozen=True)
class SearchedFolders:
    """A folder whose files may lie in several other folders, which are searched for them."""

    home: Path
    """The folder, or the first that was given for it; resolved."""
    given: Given = field(default_factory=dict)
    """The folders, resolved, that are searched in place of a path below the folder; the path is `ITSELF` for the
    whole folder."""
    alike: bool = True
    """Whether a file that lies in several folders must be the same one in all of them."""

    @classmethod
    def of(cls, folders: Sequence[Path]) -> "SearchedFolders":
        """Several folders that together are one: a file is that of the first folder that has it."""
        resolved = tuple(folder.resolve() for folder in folders)
        return cls(resolved[0], {ITSELF: resolved}, alike=False)

    def __str__(self) -> str:
        return " and ".join(map(str, self.given.get(ITSELF, (self.home,))))

    def places(self, name: str) -> tuple[Located, ...]:
        """The places where a file may lie, in the order of search."""
        whole = PurePosixPath(name)
        for part in whole.parents if self.given else ():
            if str(part) in self.given:
                return tuple(Located(folder, str(whole.relative_to(part))) for folder in self.given[str(part)])
        return (Located(self.home, name),)

    def found(self, names: Iterable[str]) -> dict[str, Located]:
        """Find files: for each of `names` that exists, its place in the first folder that has it.

        Raises for one that would lie elsewhere, and for two different files of one name if they must be `alike`.
        """
        places = {name: self.places(name) for name in names}
        wanted: dict[Path, set[str]] = {}
        for place in chain.from_iterable(places.values()):
            wanted.setdefault(place.folder, set()).add(place.file)
        files = {folder: existing(folder, inside_it) for folder, inside_it in wanted.items()}
        there = {}
        for name, candidates in places.items():
            if found := [place for place in candidates if place.file in files[place.folder]]:
                check_same(name, found if self.alike else found[:1])
                there[name] = found[0]
        return there


def check_same(name: str, places: Sequence[Located]) -> None:
    """Raise unless a file that lies in several folders has the same bytes in all of them."""
    for place in places[1:]:
        try:
            same = place.path.samefile(places[0].path) or filecmp.cmp(place.path, places[0].path, shallow=False)
        except OSError as error:
            raise UserError(
                f"{name!r} lies in {places[0].folder} and in {place.folder}, and can't be compared "
                f"({error.strerror or error}); leave one of them out"
            ) from error
        if not same:
            raise UserError(
                f"{name!r} is one file in {places[0].folder} and another in {place.folder}; leave one of them out"
            )
