"""Where a file or folder lies that isn't where it should be: a folder higher or lower, or with another ending."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def nearby(folder: Path, name: str) -> Path | None:
    """The first such place of `name`, a path below `folder` that doesn't lead out of it; None where there is none."""
    return next((path for path in places(folder, PurePosixPath(name)) if os.path.exists(path)), None)


def hint(folder: Path, name: str) -> str:
    """A clause that says where it lies; empty where it isn't near."""
    place = nearby(folder, name)
    return f"; it lies at {place}" if place else ""


def places(folder: Path, name: PurePosixPath) -> Iterator[Path]:
    """A folder higher, a folder lower, and with another ending."""
    own = (folder / name).parent
    yield folder.parent / name
    if len(name.parts) > 1:
        yield folder.joinpath(*name.parts[1:])
        yield own.parent / name.name
    yield from (part / name for part in entries_of(folder) if os.path.isdir(part))
    if own != folder:
        yield from (part / name.name for part in entries_of(own) if os.path.isdir(part))
    yield from (path for path in entries_of(own) if path.stem.lower() == name.stem.lower())


def entries_of(folder: Path) -> list[Path]:
    """What is in a folder, by name; nothing where it can't be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
