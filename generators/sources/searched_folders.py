"""Folders in which image files are searched: one, or others that were given for it or for a folder in it."""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from envs.common.errors import UserError
from generators.sources.folders import existing, inside

# Folders that were given in place of others, by the path that they would have below a data root: all are searched.
Given = Mapping[str, tuple[Path, ...]]
ITSELF = "."


class Located(NamedTuple):
    """A file of a folder."""

    folder: Path
    file: str
    """Its path below the folder."""

    @property
    def path(self) -> Path:
        """Where it is; raises where that isn't below the folder."""
        return inside(self.folder, self.file)


class SearchedFolders(NamedTuple):
    """Where the files below a folder are."""

    home: Path
    """The folder, or the first that was given for it; resolved."""
    given: Given = MappingProxyType({})
    """By path below the folder, `ITSELF` for all of it: the resolved folders that are searched in its place."""

    def __str__(self) -> str:
        return " and ".join(map(str, self.given.get(ITSELF, (self.home,))))

    def places(self, name: str) -> tuple[Located, ...]:
        """Where a file is looked for, the first place first."""
        whole = PurePosixPath(name)
        for part in whole.parents if self.given else ():
            if str(part) in self.given:
                return tuple(Located(folder, str(whole.relative_to(part))) for folder in self.given[str(part)])
        return (Located(self.home, name),)

    def found(self, names: Iterable[str]) -> dict[str, Located]:
        """Those of `names` that are files, each in the first folder that has it.

        Raises for one that would lie elsewhere, and for one that lies in two folders with different sizes.
        """
        wanted: dict[Path, list[tuple[str, Located]]] = {}
        for name in names:
            for place in self.places(name):
                wanted.setdefault(place.folder, []).append((name, place))
        there: dict[str, Located] = {}
        for folder, own in wanted.items():
            files = existing(folder, {place.file for _, place in own})
            for name, place in own:
                if place.file in files and there.setdefault(name, place) != place:
                    check_same(name, there[name], place)
        return there


def check_same(name: str, one: Located, other: Located) -> None:
    """Raise unless a file that lies in two folders has one size in both."""
    if one.path.stat().st_size != other.path.stat().st_size:
        raise UserError(
            f"{name!r} is one file in {one.folder} and another in {other.folder}; leave one of the folders out"
        )
