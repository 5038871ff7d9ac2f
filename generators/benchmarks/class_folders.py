"""Finds the class that each folder in a set of images stands for.

A folder is recognised by its name: the class's name or number, WordNet's id, a code (`known_classes.py`), or an entry
of the set's `classes.txt`. Its place in the alphabet is never used; an unknown folder is refused by name.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as shown

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_system_file
from menagerie.generators.benchmarks.known_classes import Classes, class_from_folder, known_classes, normalize_name
from menagerie.generators.sources.folders import spellings
from menagerie.generators.sources.rows import is_text, read_foreign_text

NO_WORD = re.compile(r"n[0-9]{8}|[0-9]+")  # folder names that aren't words: ids and numbers
WAY_OUT = "write FOLDER, a tab and the NAME of its class on each line"


def folder_classes(folder: Path) -> dict[str, str]:
    """The name of the class of each folder in a set; raises for fewer than two folders, and for an unknown folder."""
    folders, list_file = [path.name for path in folders_in(folder)], folder / "classes.txt"
    classes = None if list_file.is_file() else known_classes(folder.name)
    if classes is not None:
        folders = [name for name in folders if normalize_name(name) not in classes.others]
    if len(folders) < 2:
        raise UserError(f"{folder} has {len(folders)} folders of classes, and choosing needs at least 2")
    if list_file.is_file():
        return listed_names(list_file, folders)
    if classes is not None:
        return known_names(folder, folders, classes)
    if wordless := next((name for name in folders if NO_WORD.fullmatch(name)), None):
        raise UserError(
            f"the name of the class {wordless!r} in {folder} isn't known; {WAY_OUT} of {list_file}, or call "
            "the folder as CLIP_benchmark calls the set (imagenet1k, imagenet-a, ...)"
        )
    return {name: class_from_folder(folder.name, name) for name in folders}


def known_names(folder: Path, folders: Sequence[str], classes: Classes) -> dict[str, str]:
    """The class of each folder of a known set; raises unless folders and classes match one to one."""
    places = {name: classes.places.get(normalize_name(name)) for name in folders}
    owners = {place: name for name, place in reversed(places.items())}
    odd = [name for name, place in places.items() if place is None or owners[place] != name]
    lacking = [name for place, name in enumerate(classes.names) if place not in owners]
    if odd or lacking:
        wanting = (("class left", odd), ("folder", lacking))
        reasons = [f"there is no {kind} for {shown(names)}" for kind, names in wanting if names]
        raise UserError(
            f"{folder} has {len(folders)} folders for the {len(classes.names)} classes of {folder.name}: "
            f"{'; '.join(reasons)}; copy the set again, rename them, or {WAY_OUT} of {folder / 'classes.txt'}"
        )
    return {name: classes.names[place] for name, place in places.items() if place is not None}


def listed_names(list_file: Path, folders: Sequence[str]) -> dict[str, str]:
    """The class name of each folder, from the lines "FOLDER<tab>NAME" of `classes.txt`."""
    halves = [tuple(map(str.strip, line.partition("\t"))) for line in read_list(list_file)]
    on_disk = {way: name for name in folders for way in spellings(name)}
    found = {on_disk.get(folder, folder): name for folder, _, name in halves}
    if found.keys() != set(folders) or len(found) != len(halves) or not all(found.values()):
        raise UserError(
            f"{list_file} has {len(halves)} lines for {len(folders)} folders, which don't match: "
            f"{shown(sorted(set(folders) ^ found.keys()) or folders)}; {WAY_OUT}"
        )
    return {name: found[name] for name in folders}


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, in the order of their numbers if they have numbers; hidden folders are skipped."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; docs/transfer.md says what belongs there")
    visible = (path for path in folder.iterdir() if not path.name.startswith(".") and not is_system_file(path.name))
    found = [path for path in visible if path.is_dir()]
    numbered = all(path.name.isdecimal() and path.name.isascii() and len(path.name) < 10 for path in found)
    return sorted(found, key=lambda path: (int(path.name) if numbered else 0, path.name))


def read_list(path: Path) -> list[str]:
    """The lines of a text file, split at newlines only. Raises if the file is empty or has an empty line before its
    end."""
    found = [line.strip() for line in read_foreign_text(path).rstrip().split("\n")]
    if not all(map(is_text, found)):
        raise UserError(f"{path} has an empty line, or none at all; give one for each")
    return found
