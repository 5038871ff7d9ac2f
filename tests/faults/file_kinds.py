"""The kinds of files that the project reads: how one is made, how it is read, and what an intact one gives.

A new kind joins by an entry in `our_files.py` (written and read by the project) or `their_files.py` (somebody else's).
"""

import shutil
from collections.abc import Callable
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.damage import Damage
from tests.helpers.judge import Verdict, judged, outcome


class FileKind(NamedTuple):
    """One kind of file."""

    name: str
    make: Callable[[Path], Path]
    """Makes an intact one, with what belongs to it, in a folder; returns the file."""
    read: Callable[[Path], Any]
    """What the project has of it; the path may lie in a copy of that folder."""
    modules: tuple[str, ...]
    """Whose functions open it."""
    same: Callable[[Any, Any], bool] = eq
    """Whether what was read of a damaged one is what an intact one gives, as far as it is read at all."""
    free: bool = False
    """Whether any well-formed content is right: a file that somebody else writes, so no digest can be asked of it."""


class Made(NamedTuple):
    """An intact file in its folder, and what reading it gives."""

    kind: FileKind
    folder: Path
    file: Path
    intact: Any

    def judge(self, damage: Damage, work: Path) -> Verdict | None:
        """Damage a copy and read it; None where the damage changes nothing."""
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.folder, work, symlinks=True)
        path = work / self.file.relative_to(self.folder)
        if not damage.spoil(path):
            return None
        forged = damage.fault == "another value" and path.suffix in (".json", ".jsonl", ".log")
        forged |= damage.fault == "another table" and path.suffix == ".npz"
        found = outcome(self.kind.read, path)
        return judged(found, self.intact, self.kind.same, path, self.kind.free or forged)


def made(kind: FileKind, folder: Path) -> Made:
    """Make an intact file and read a copy of it: reading may add to the folder."""
    file = kind.make(folder)
    copy = folder.with_name(folder.name + "-copy")
    shutil.copytree(folder, copy, symlinks=True)
    what, value = outcome(kind.read, copy / file.relative_to(folder))
    shutil.rmtree(copy)
    if what != "value":
        raise AssertionError(f"an intact {kind.name} can't be read: {value}")
    return Made(kind, folder, file, value)
