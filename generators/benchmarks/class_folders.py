"""Class names and templates of image sets, and the class that each folder in a set stands for.

A folder is recognised by its name: the class's name or number, WordNet's id, a code, or an entry of the set's
`classes.txt`. Its place in the alphabet is never used; an unknown folder is refused by name.

Known sets go by CLIP_benchmark's names. `data/classes.json` has CLIP's class names and templates. `data/folders.json`
has the names of class folders that aren't class names (WordNet's ids, codes of countries, words of the set's own), the
class names of ImageNet's variants, and the folders that a set's test leaves out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from reprlib import repr as shown
from typing import Any, NamedTuple
from unicodedata import normalize

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_system_file, read_json
from menagerie.generators.sources.folders import spellings
from menagerie.generators.sources.rows import is_text, read_foreign_text

DATA = Path(__file__).parent / "data"
SLOT = "{c}"
TEMPLATES = (f"a photo of a {SLOT}.",)
IMAGENET = "imagenet1k"
# Sets that have another set's classes.
SAME = dict.fromkeys(("imagenetv2", "imagenet_sketch", "imagenet1k-unverified", "imagenet-w"), IMAGENET)
# Sets that use ImageNet's templates.
VARIANTS = (*SAME, "imagenet-a", "imagenet-r", "imagenet-o", "objectnet")
# Class numbers that aren't positions in the list of names: fer2013.csv counts sad, surprised, neutral from 4.
ORDERS = {"fer2013": (0, 1, 2, 3, 5, 6, 4)}
AS_THEY_ARE = ("cifar100",)  # sets whose class names CLIP_benchmark leaves unchanged, with underscores


class Classes(NamedTuple):
    """The classes of a set, and how its folders name them."""

    names: Sequence[str]
    places: Mapping[str, int]
    """Class index by folder name, as `normalize_name` writes it."""
    others: frozenset[str]
    """Folders that the set's test leaves out, as `normalize_name` writes them."""


@cache
def known_classes(name: str) -> Classes | None:
    """The classes of the set called `name`; None if its class names aren't known."""
    key, listed = SAME.get(set_name(name), set_name(name)), read_json(DATA / "folders.json")
    names = clip_names()["classes"].get(key) or listed["names"].get(key)
    if not names:
        return None
    places = {str(number): place for number, place in enumerate(ORDERS.get(key, range(len(names))))}
    places |= {
        normalize_name(class_name): place for place, class_name in enumerate(names) if names.count(class_name) == 1
    }
    places |= {normalize_name(folder): place for place, folder in enumerate(listed["folders"].get(key, ()))}
    others = frozenset(map(normalize_name, listed["others"].get(key, ())))
    return Classes(names, places, others)


def known_templates(name: str, folders: Iterable[str] = ()) -> Sequence[str]:
    """CLIP's templates for the set called `name`, ImageNet's for a part of ImageNet by its name or by its folders, all
    WordNet's ids; a plain one for other sets."""
    key = set_name(name)
    ids = [bool(WORDNET.fullmatch(folder)) for folder in folders]
    parts = key in VARIANTS or key.lower().startswith("imagenet") or (ids and all(ids))
    return clip_names()["templates"].get(IMAGENET if parts else key, TEMPLATES)


def class_from_folder(name: str, folder: str) -> str:
    """A class name from a folder's name: with spaces or, in a set of CLIP_benchmark, as it writes class names."""
    key = set_name(name)
    if key in AS_THEY_ARE:
        return folder
    folder = normalize("NFC", folder)
    return " ".join(folder.replace("_", " ").split()) if key in clip_names()["templates"] else with_spaces(folder)


@cache
def set_name(name: str) -> str:
    """CLIP_benchmark's name of a data set, by letters and digits alone ("eurosat" for "EuroSAT", "objectnet" for
    "objectnet-1.0"); else `name`."""
    keys = (*clip_names()["classes"], *clip_names()["templates"], *VARIANTS)
    known = {"".join(filter(str.isalnum, key)).lower(): key for key in keys}
    return known.get("".join(filter(str.isalnum, name.removesuffix("-1.0"))).lower(), name)


def with_spaces(name: str) -> str:
    """A folder's name with spaces between words."""
    return " ".join(re.split(r"[\s_-]+", name)).strip()


def normalize_name(name: str) -> str:
    """A name normalised for comparison: lower-case words, numbers without leading zeros."""
    words = with_spaces(name).lower()
    return str(int(words)) if words.isdecimal() and words.isascii() else words


@cache
def clip_names() -> dict[str, Any]:
    """CLIP's class names and templates, as CLIP_benchmark lists them."""
    return read_json(DATA / "classes.json")


WORDNET = re.compile(r"n[0-9]{8}")
NO_WORD = re.compile(rf"{WORDNET.pattern}|[0-9]+")  # folder names that aren't words: ids and numbers
WAY_OUT = "write FOLDER, a tab and the NAME of its class on each line"


def folder_classes(folder: Path, name: str = "") -> dict[str, str]:
    """The name of the class of each folder in the set called `name`, by default as its folder. Raises for fewer than
    two folders, and for an unknown folder."""
    folders, list_file = [path.name for path in folders_in(folder)], folder / "classes.txt"
    classes = None if list_file.is_file() else known_classes(name or folder.name)
    if classes is not None:
        folders = [at for at in folders if normalize_name(at) not in classes.others]
    if len(folders) < 2:
        raise UserError(f"{folder} has {len(folders)} folders of classes, and choosing needs at least 2")
    if list_file.is_file():
        return listed_names(list_file, folders)
    if classes is not None:
        return known_names(folder, folders, classes)
    if (whole := known_classes(IMAGENET)) and all(WORDNET.fullmatch(at) and at in whole.places for at in folders):
        return {at: whole.names[whole.places[at]] for at in folders}
    if wordless := next((at for at in folders if NO_WORD.fullmatch(at)), None):
        raise UserError(
            f"the name of the class {wordless!r} in {folder} isn't known; {WAY_OUT} of {list_file}, or call "
            "the folder as CLIP_benchmark calls the set (imagenet1k, imagenet-a, ...)"
        )
    return {at: class_from_folder(name or folder.name, at) for at in folders}


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
    """The lines of a text file, split at newlines only. Raises if one before its end is empty, or the file is."""
    found = [line.strip() for line in read_foreign_text(path).rstrip().split("\n")]
    if not all(map(is_text, found)):
        raise UserError(f"{path} has an empty line, or none at all; give one for each")
    return found
