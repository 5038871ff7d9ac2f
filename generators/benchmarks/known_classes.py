"""Sets of images whose classes and templates are known: CLIP's, by what CLIP_benchmark calls a set.

`data/classes.json` has its names and templates. `data/folders.json` says what the folders of classes are called where
that isn't their names (WordNet's ids, codes of countries, words of the set's own), and names of ImageNet's variants.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.reading import read_json

DATA = Path(__file__).parent / "data"
SLOT = "{c}"
TEMPLATES = (f"a photo of a {SLOT}.",)
IMAGENET = "imagenet1k"
# Sets of the same classes under other names.
SAME = dict.fromkeys(("imagenetv2", "imagenet_sketch", "imagenet1k-unverified", "imagenet-w"), IMAGENET)
# Sets that take ImageNet's templates.
VARIANTS = (*SAME, "imagenet-a", "imagenet-r", "imagenet-o", "objectnet")
# Where folders are numbered and a number isn't the place of a name: fer2013.csv counts sad, surprised, neutral from 4.
ORDERS = {"fer2013": (0, 1, 2, 3, 5, 6, 4)}
FROM_ONE = ("flowers", "pets")  # sets whose authors count from 1
AS_THEY_ARE = ("cifar100",)  # classes whose names CLIP_benchmark leaves as they are, underscores too


class Classes(NamedTuple):
    """The classes of a set."""

    names: Sequence[str]
    places: Mapping[str, int]
    """For each name that a folder may have, in the form of `spelled`, the index of its class in `names`."""
    others: frozenset[str]
    """Folders of the set that its test leaves out, as `spelled`."""
    from_one: bool
    """Whether numbered folders may be counted from 1."""


@cache
def known_classes(name: str) -> Classes | None:
    """The classes of a set of that name; None where their names aren't known."""
    key, listed = SAME.get(key_of(name), key_of(name)), read_json(DATA / "folders.json")
    names = known()["classes"].get(key) or listed["names"].get(key)
    if not names:
        return None
    places = {str(number): place for number, place in enumerate(ORDERS.get(key, range(len(names))))}
    places |= {spelled(class_name): place for place, class_name in enumerate(names) if names.count(class_name) == 1}
    places |= {spelled(folder): place for place, folder in enumerate(listed["folders"].get(key, ()))}
    others = frozenset(map(spelled, listed["others"].get(key, ())))
    return Classes(names, places, others, key in FROM_ONE)


def known_templates(name: str) -> Sequence[str]:
    """CLIP's templates for a set of that name, or a plain one."""
    key = key_of(name)
    return known()["templates"].get(IMAGENET if key in VARIANTS else key, TEMPLATES)


def words_of(name: str, folder: str) -> str:
    """The class of a folder of the set `name` that is called as its class, in CLIP_benchmark's words."""
    key = key_of(name)
    if key in AS_THEY_ARE:
        return folder
    return " ".join(folder.replace("_", " ").split()) if key in known()["templates"] else plain(folder)


@cache
def key_of(name: str) -> str:
    """CLIP_benchmark's name of a data set, found regardless of capitals and dashes: "eurosat" for "EuroSAT"."""
    keys = (*known()["classes"], *known()["templates"], *VARIANTS)
    return {letters(key): key for key in keys}.get(letters(name), name)


def letters(name: str) -> str:
    """The letters and digits of a name, small."""
    return "".join(filter(str.isalnum, name)).lower()


def plain(name: str) -> str:
    """A folder's name as words."""
    return " ".join(re.split(r"[\s_-]+", name)).strip()


def spelled(name: str) -> str:
    """A name to compare: its words in small letters, a number without leading zeros."""
    words = plain(name).lower()
    return str(int(words)) if words.isdecimal() and words.isascii() else words


@cache
def known() -> dict[str, Any]:
    """CLIP's names of classes and templates, as CLIP_benchmark has them."""
    return read_json(DATA / "classes.json")
