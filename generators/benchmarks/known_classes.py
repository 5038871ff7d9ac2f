"""CLIP's class names and templates for known image sets, which go by CLIP_benchmark's names.

`data/classes.json` has class names and templates. `data/folders.json` has the names of class folders that aren't class
names (WordNet's ids, codes of countries, words of the set's own), the class names of ImageNet's variants, and the
folders that a set's test leaves out.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from menagerie.envs.core.reading import read_json

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


def known_templates(name: str) -> Sequence[str]:
    """CLIP's templates for the set called `name`; a plain one for other sets."""
    key = set_name(name)
    return clip_names()["templates"].get(IMAGENET if key in VARIANTS else key, TEMPLATES)


def class_from_folder(name: str, folder: str) -> str:
    """Make a class name from a folder's name: with spaces between words or, if CLIP_benchmark knows the set `name`, as
    it writes class names."""
    key = set_name(name)
    if key in AS_THEY_ARE:
        return folder
    folder = normalize("NFC", folder)
    return " ".join(folder.replace("_", " ").split()) if key in clip_names()["templates"] else with_spaces(folder)


@cache
def set_name(name: str) -> str:
    """CLIP_benchmark's name of a data set, found by letters and digits alone: "eurosat" for "EuroSAT". `name` itself if
    there is none."""
    keys = (*clip_names()["classes"], *clip_names()["templates"], *VARIANTS)
    return {letters(key): key for key in keys}.get(letters(name), name)


def letters(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, name)).lower()


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
