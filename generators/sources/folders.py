"""Files below a folder of somebody's data: whatever a data file names stays below it."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_litter


def inside(root: Path, name: str) -> Path:
    """The path of the file `name` below `root`, a resolved path; raises where it would lead elsewhere."""
    relative = Path(name)
    try:
        path = (root / relative).resolve()
    except (OSError, ValueError, RuntimeError):  # a circle of links, no name of a file
        path = None
    if path is None or relative.is_absolute() or ".." in relative.parts or not path.is_relative_to(root):
        raise UserError(f"{name!r} leads out of the image folder {root}; do not trust the file that names it")
    return path


def existing(root: Path, names: Iterable[str]) -> set[str]:
    """Those of `names` that are files below `root`, a resolved path; raises for one that would lie elsewhere.

    Folders are listed, each once: to follow every path by itself takes ten times as long.
    """
    folders = defaultdict(list)
    for name in names:
        folders[os.path.split(name)[0]].append(name)
    there = set()
    for folder, own in folders.items():
        inside(root, own[0])  # whose error names the file
        plain = plain_files(inside(root, folder))
        there |= {n for n in own if os.path.split(n)[1] in plain or os.path.isfile(inside(root, n))}
    return there


def plain_files(folder: Path) -> frozenset[str]:
    """The names of the files in a folder that are no links; none where there is no such folder."""
    return names_in(folder, links=False)


def files_in(folder: Path) -> frozenset[str]:
    """The names of the files in a folder but what operating systems leave; none where there is no such folder."""
    return frozenset(name for name in names_in(folder, links=True) if not is_litter(name))


def names_in(folder: Path, links: bool) -> frozenset[str]:
    """The names of the files in a folder, and of links to files."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=links))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
