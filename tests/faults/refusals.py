"""Errors of the system when it opens an intact file: no message may call the file damaged or advise to delete it."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.file_kinds import Made
from tests.helpers.judge import ANEW, outcome

NOBODY = 65534
LOST = ("training state",)  # kinds that must not be made anew, because they would be lost
# Words of messages that call a file damaged, or advise to make it again.
ADVICE = ("damage", "delete", "again", "anew")


def without_permission(path: Path) -> None:
    """Take away the right of this process to read a file."""
    path.chmod(0)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


def without_handles(path: Path) -> None:
    """Let this process run out of file handles."""
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return


REFUSALS: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("Permission denied", without_permission),
    ("Too many open files", without_handles),
)


def complaints(intact: Made) -> list[str]:
    """List what is wrong with the messages about an intact file of a kind that the system refuses to open."""
    found = []
    for reason, refuse in REFUSALS:
        work = Path(tempfile.mkdtemp())
        try:
            shutil.copytree(intact.folder, work / "made", symlinks=True)
            for place in (work, *work.rglob("*")):
                place.chmod(0o755)

            def read(path: Path, refuse: Callable[[Path], None] = refuse) -> Any:
                intact.kind.read(path)  # imports what it needs
                refuse(path)
                return intact.kind.read(path)

            what, value = outcome(read, work / "made" / intact.file.relative_to(intact.folder))
        finally:
            shutil.rmtree(work)
        remade = value in (ANEW, {}) and intact.kind.name not in LOST
        if what == "value" and (remade or intact.kind.same(value, intact.intact)):
            continue
        said = value if what == "error" else value.strip().splitlines()[-1]
        named = what == "error" or (said.startswith(("OSError: [Errno", "PermissionError: [Errno")) and "'/" in said)
        if not named or reason not in said or any(word in said for word in ADVICE):
            found.append(f"{reason}: {what} {value}")
    return found
