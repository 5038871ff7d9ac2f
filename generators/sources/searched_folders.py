"""Folders in which image files are searched: one, or others that were given for it or for a folder in it."""

import filecmp
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.folders import existing, inside

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


@dataclass(frozen=True)
class SearchedFolders:
    """Where the files below a folder are."""

    home: Path
    """The folder, or the first that was given for it; resolved."""
    given: Given = field(default_factory=dict)
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

        Raises for one that would lie elsewhere, and for two different files of one name.
        """
        places = {name: self.places(name) for name in names}
        wanted: dict[Path, set[str]] = {}
        for place in (place for its in places.values() for place in its):
            wanted.setdefault(place.folder, set()).add(place.file)
        files = {folder: existing(folder, own) for folder, own in wanted.items()}
        there = {}
        for name, its in places.items():
            if own := [place for place in its if place.file in files[place.folder]]:
                check_same(name, own)
                there[name] = own[0]
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
