"""Output files that are written whole or not at all, and what killed processes left of theirs."""

import contextlib
import csv
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from envs.common.errors import UserError
from envs.common.life import is_running, system_name

# Files end in `.SYSTEM-PROCESS.tmp.SUFFIX`, folders begin with this and `-SYSTEM-PROCESS-`.
SCRATCH = "menagerie"
TEMPORARY = re.compile(r"\..+\.(?P<system>[^.]+)-(?P<process>\d+)\.tmp(\.\w+)?")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it.

    The temporary name keeps `path`'s suffix, because some writers append their own. A killed
    process leaves at most a file whose name starts with a dot; the next one that writes into the folder deletes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    clear_once(path.parent.absolute())
    temporary = path.with_name(f".{path.stem}.{system_name()}-{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table to `path`, whole or not at all; None is an empty cell."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows((header, *rows))


def check_place(option: str, folder: Path | None) -> None:
    """Raise where an option's folder can't be made, because it or one above it is a file."""
    if folder is None:
        return
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if not there.is_dir():
        raise UserError(f"{option} {folder}: {there} is no folder; choose another {option}")


@contextlib.contextmanager
def scratch_folder(where: Path | None = None) -> Iterator[Path]:
    """Yield a new folder in `where` or the system's place for such, deleted at the end; one of a killed process goes
    with the next that is made there."""
    parent = Path(where or tempfile.gettempdir())
    for folder in parent.glob(f"{SCRATCH}-{system_name()}-*"):
        process = folder.name.split("-")[2]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
    owner = os.getpid()
    folder = tempfile.mkdtemp(dir=where, prefix=f"{SCRATCH}-{system_name()}-{owner}-")
    try:
        yield Path(folder)
    finally:
        if os.getpid() == owner:  # multiprocessing forgets finalizers in a fork, which would end this there
            shutil.rmtree(folder, ignore_errors=True)


def is_temporary(path: Path) -> bool:
    """Whether a path is named as `whole_file` names what it writes, by whatever process."""
    return TEMPORARY.fullmatch(path.name) is not None


def clear_leftovers(folder: Path, below: bool = False, alone: bool = False) -> None:
    """Delete the temporary files that killed processes left in a folder, and `below` it.

    Those of processes that run are kept, and those of other systems, of which nobody knows here; where this process
    is `alone`, by a lock that all writers take, they go too.
    """
    for path in folder.rglob(".*.tmp*") if below else folder.glob(".*.tmp*"):
        if path.is_file() and is_left(path, alone):
            path.unlink(missing_ok=True)


@cache
def clear_once(folder: Path) -> None:
    """Clear a folder when this process first writes there: it may hold very many files."""
    with contextlib.suppress(OSError):  # somebody else's
        clear_leftovers(folder)


def is_left(path: Path, alone: bool) -> bool:
    """Whether nobody goes on writing a temporary file."""
    name = TEMPORARY.fullmatch(path.name)
    if name is None:
        return alone  # as earlier versions named them
    return not is_running(int(name["process"])) if name["system"] == system_name() else alone
