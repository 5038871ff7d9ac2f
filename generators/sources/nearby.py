"""Where a file or folder lies that isn't where it should be: a folder higher or lower, or with another ending."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def nearby(folder: Path, name: str) -> Path | None:
    """The first such place of `name`, a path below `folder` that doesn't lead out of it; None where there is none."""
    return next((path for path in places(folder, PurePosixPath(name)) if path.exists()), None)


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
    yield from (part / name for part in folders_in(folder))
    if own != folder:
        yield from (part / name.name for part in folders_in(own))
    if own.is_dir():
        yield from sorted(path for path in own.iterdir() if path.stem.lower() == name.stem.lower())


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, by name; none where there is no such folder."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
