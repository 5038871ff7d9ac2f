"""Paths inside a user's folders: names in data files can't lead outside.

Files are looked up in one folder, or in several folders given in place of this folder or of one inside it.
"""

import errno
import filecmp
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from unicodedata import normalize

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import inside, is_system_file


def find_files(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Which of `names` are files below a folder, each with its spelling on disk (`spellings`); raises for a name that
    leads outside.

    Each folder is listed once: checking every path by itself takes ten times as long.
    """
    folders = defaultdict(list)
    for name in names:
        inside(root, name)
        folders[os.path.split(name)[0]].append(name)
    there = {}
    for folder, files in folders.items():
        listed = files_in(root / folder)
        for name in files:
            if os.path.split(name)[1] in listed:
                there[name] = name
            elif found := next((way for way in spellings(name) if os.path.isfile(root / way)), None):
                there[name] = found
    return there


def spellings(name: str) -> Iterable[str]:
    """A name, and its normal forms of Unicode: archives of macOS write "é" as two characters, others as one."""
    return dict.fromkeys((name, normalize("NFC", name), normalize("NFD", name)))


def files_in(folder: Path) -> frozenset[str]:
    """The names of the files in a folder, without those that operating systems create; empty if there is no such
    folder."""
    try:
        with os.scandir(folder) as entries:
            files = (e.name for e in entries if (os.path.isfile(e.path) if e.is_symlink() else e.is_file()))
            return frozenset(name for name in files if not is_system_file(name))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        return frozenset()


# Further folders by the path below a data root that they stand for: all are searched.
Given = Mapping[str, tuple[Path, ...]]
ITSELF = "."


class Located(NamedTuple):
    """A possible location of a file: a folder, and the path below it."""

    folder: Path
    file: str
    """Path of the file relative to the folder."""

    @property
    def path(self) -> Path:
        """The full path of the file; raises if it isn't inside the folder."""
        return inside(self.folder, self.file)


@dataclass(frozen=True)
class SearchedFolders:
    """A folder whose files may lie in several other folders, all of which are searched."""

    home: Path
    """The folder, or the first folder that replaces it."""
    given: Given = field(default_factory=dict)
    """Folders that are searched in place of a path below the folder; the path is `ITSELF` for the whole
    folder."""
    alike: bool = True
    """Whether copies of a file in several folders must be equal."""

    @classmethod
    def of(cls, folders: Sequence[Path]) -> "SearchedFolders":
        """Combine several folders into one: a file is taken from the first folder that has it."""
        return cls(folders[0], {ITSELF: tuple(folders)}, alike=False)

    def __str__(self) -> str:
        return " and ".join(map(str, self.given.get(ITSELF, (self.home,))))

    def places(self, name: str) -> tuple[Located, ...]:
        """The possible locations of a file, in the order of search."""
        whole = PurePosixPath(name)
        for part in whole.parents if self.given else ():
            if str(part) in self.given:
                return tuple(Located(folder, str(whole.relative_to(part))) for folder in self.given[str(part)])
        return (Located(self.home, name),)

    def found(self, names: Iterable[str]) -> dict[str, Located]:
        """For each of `names` that exists, its location in the first folder that has it.

        Raises for a name that leads outside a folder, and for two different files of one name if they must be `alike`.
        """
        places = {name: self.places(name) for name in names}
        wanted: dict[Path, set[str]] = {}
        for place in chain.from_iterable(places.values()):
            wanted.setdefault(place.folder, set()).add(place.file)
        files = {folder: find_files(folder, inside_it) for folder, inside_it in wanted.items()}
        there = {}
        for name, candidates in places.items():
            spelled = (Located(place.folder, files[place.folder].get(place.file, "")) for place in candidates)
            if found := [place for place in spelled if place.file]:
                check_copies(name, found if self.alike else found[:1])
                there[name] = found[0]
        return there


def check_copies(name: str, places: Sequence[Located]) -> None:
    """Raise unless all copies of a file have the same bytes."""
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
