"""The kinds of files that the project reads. `our_files.py` lists those that it writes, `their_files.py` all others."""

import os
import shutil
import tempfile
from collections.abc import Callable
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.damage import Damage
from tests.helpers.judge import ANEW, Verdict, judged, outcome

NOBODY = 65534
LOST = ("training state",)  # kinds that must not be made anew, because they would be lost
# Words of messages that call a file damaged, or advise to make it again.
ADVICE = ("damage", "delete", "again", "anew")


class FileKind(NamedTuple):
    """One kind of file."""

    name: str
    make: Callable[[Path], Path]
    """Makes an intact file, and what belongs to it, in an empty folder; returns the file."""
    read: Callable[[Path], Any]
    """Returns what the project reads; the path may lie in a copy of that folder."""
    same: Callable[[Any, Any], bool] = eq
    """Whether what was read of a damaged file is right, given what is read of an intact one."""
    free: bool = False
    """Whether any well-formed content is right, because somebody else writes the file, without a digest."""


class Made(NamedTuple):
    """An intact file in its folder, and what reading it gives."""

    kind: FileKind
    folder: Path
    file: Path
    intact: Any

    def judge(self, damage: Damage, work: Path) -> Verdict | None:
        """Damage a copy and read it; None if the damage changes nothing."""
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.folder, work, symlinks=True)
        path = work / self.file.relative_to(self.folder)
        if not damage.spoil(path):
            return None
        forged = damage.fault == "another value" and path.suffix in (".json", ".jsonl", ".log")
        found = outcome(self.kind.read, path)
        return judged(found, self.intact, self.kind.same, path, self.kind.free or forged)

    def complaint(self) -> str:
        """What is wrong with the message if this process may not read the file; empty if nothing is."""

        def read(path: Path) -> Any:
            self.kind.read(path)  # imports what it needs
            path.chmod(0)
            if os.geteuid() == 0:
                os.seteuid(NOBODY)
            return self.kind.read(path)

        with tempfile.TemporaryDirectory() as work:
            shutil.copytree(self.folder, Path(work) / "made", symlinks=True)
            for place in (Path(work), *Path(work).rglob("*")):
                place.chmod(0o755)
            what, value = outcome(read, Path(work) / "made" / self.file.relative_to(self.folder))
        remade = value in (ANEW, {}) and self.kind.name not in LOST
        if what == "value" and (remade or self.kind.same(value, self.intact)):
            return ""
        said = value if what == "error" else value.strip().splitlines()[-1]
        named = what == "error" or (said.startswith("PermissionError: [Errno") and "'/" in said)
        clear = named and "Permission denied" in said and not any(word in said for word in ADVICE)
        return "" if clear else f"{what} {value}"


def made(kind: FileKind, folder: Path) -> Made:
    """Make an intact file and read a copy of it, because reading may add to the folder."""
    folder.mkdir(parents=True)
    file = kind.make(folder)
    copy = folder.with_name(folder.name + "-copy")
    shutil.copytree(folder, copy, symlinks=True)
    what, value = outcome(kind.read, copy / file.relative_to(folder))
    shutil.rmtree(copy)
    if what != "value":
        raise AssertionError(f"an intact {kind.name} can't be read: {value}")
    return Made(kind, folder, file, value)
