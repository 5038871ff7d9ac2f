"""Paths inside a user's folders: names in data files can't lead outside.

Files are looked up in one folder, or in several folders given in place of this folder or of one inside it.
"""

import errno
import filecmp
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_system_file, path_inside, reading


def find_files(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Which of `names` are files below a folder, each with its spelling on disk (`spellings`); raises for a name that
    leads outside. Each folder is listed once: checking every path by itself takes ten times as long."""
    folders = defaultdict(list)
    for name in names:
        path_inside(root, name)
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
    """The names of the files in a folder, without those that operating systems create; empty if there is no folder."""
    try:
        with os.scandir(folder) as entries:
            files = (e.name for e in entries if (os.path.isfile(e.path) if e.is_symlink() else e.is_file()))
            return frozenset(name for name in files if not is_system_file(name))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        return frozenset()


# Folders by the path below a data root that they replace: all are searched.
Given = Mapping[str, tuple[Path, ...]]


@dataclass(frozen=True)
class SearchedFolders:
    """The folder `name` below `root`, whose files may lie in several other folders, all of which are searched."""

    root: Path
    name: str = "."
    given: Given = field(default_factory=dict)
    """Folders that are searched in place of a path below the root."""
    alike: bool = True
    """Whether copies of a file in several folders must be equal."""

    def __str__(self) -> str:
        return " and ".join(map(str, self.folders))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder itself, or those that replace it."""
        return tuple(folder / inner for folder, inner in self.places("."))

    def places(self, file: str) -> list[tuple[Path, str]]:
        """The folders that may have a file, in the order of search, each with the file's path below it."""
        whole = PurePosixPath(self.name, file)
        for part in (whole, *whole.parents) if self.given else ():
            if str(part) in self.given:
                return [(folder, str(whole.relative_to(part))) for folder in self.given[str(part)]]
        return [(self.root / self.name, file)]

    def found(self, names: Iterable[str]) -> dict[str, Path]:
        """The path of each of `names` that exists, in the first folder that has it. Raises for a name that leads
        outside a folder, and for two different files of one name if they must be `alike`."""
        places = {name: self.places(name) for name in names}
        wanted = defaultdict(set)
        for folder, file in chain.from_iterable(places.values()):
            wanted[folder].add(file)
        files = {folder: find_files(folder, own) for folder, own in wanted.items()}
        there = {}
        for name, candidates in places.items():
            copies = [folder / files[folder][file] for folder, file in candidates if file in files[folder]]
            for copy in copies[1:] if self.alike else ():
                check_copy(copies[0], copy)
            if copies:
                there[name] = copies[0]
        return there


def check_copy(path: Path, copy: Path) -> None:
    """Raise unless two files have the same bytes."""
    with reading(copy):
        same = copy.samefile(path) or filecmp.cmp(copy, path, shallow=False)
    if not same:
        raise UserError(f"{path.name!r} is one file in {path.parent} and another in {copy.parent}; leave one out")
