"""Zero-shot classification (Radford et al. 2021): which class is a photograph of, by the names of classes in templates?

`zero_shot/SET/CLASS/*.jpg`, as torchvision's ImageFolder has it. Names of classes and templates are CLIP's where SET is
called as in `data/classes.json` (imagenet1k, pets, ...), or the lines of `SET/classes.txt`, a class for each folder in
order, and of `SET/templates.txt`, with {c} for the class; else names are those of the folders.

The phrasings of a class are averaged: their codes, of length 1, for scorers of vectors, else their scores.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from envs.common.errors import UserError
from generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from generators.benchmarks.matrix import MatrixBenchmark, Measure, Pool, group_of
from generators.benchmarks.photographs import Photograph, Place, Record, macro
from generators.benchmarks.registry import BenchmarkSpec
from generators.captions.templates import Caption
from generators.sources.folders import files_in
from generators.sources.json_file import read_text

FOLDER = "zero_shot"
KNOWN = Path(__file__).parent / "data" / "classes.json"
SLOT = "{c}"
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
TEMPLATES = (f"a photo of a {SLOT}.",)
NO_WORD = re.compile(r"n\d{8}|\d+")  # what folders are called whose classes have names elsewhere
MEASURES = (Measure("acc1", True, 1), Measure("acc5", True, 5))


class ImageSet(NamedTuple):
    """Images of one data set, and what they may show."""

    name: str
    records: tuple[Record, ...]
    """Their clusters are keys of their classes."""
    classes: Mapping[str, str]
    """The names of all classes, by key."""
    templates: Sequence[str]


class ZeroShot(MatrixBenchmark):
    """Each set of images is a pool, its texts the classes."""

    measures = MEASURES

    def __init__(self, name: str, folder: Path, sets: Sequence[ImageSet], place: Place) -> None:
        """`sets` have their images below `folder`."""
        super().__init__(name, folder, [record for its in sets for record in its.records], place)
        here = set(self.records)
        self.pools = [self._pool(its, tuple(r for r in its.records if r in here), place) for its in sets]

    def _pool(self, its: ImageSet, records: tuple[Record, ...], place: Place) -> Pool:
        texts = tuple(
            tuple(Caption(text, place.parse(text)) for text in phrasings(name, its.templates))
            for name in its.classes.values()
        )
        places = {own: column for column, own in enumerate(its.classes)}
        pairs = tuple((row, places[record.cluster]) for row, record in enumerate(records))
        return Pool(its.name, records, tuple(self.numbers[r.images[0]] for r in records), texts, pairs)

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """Accuracy, and the mean over classes of the first."""
        found = dict(super().headlines(items, outcomes))
        for pool in self.pools:
            group = group_of(pool.name, MEASURES[0])
            classes: dict[str, list[Outcome]] = {}
            for item, outcome in zip(items, outcomes, strict=True):
                if item.group == group:
                    classes.setdefault(item.cluster, []).append(outcome)
            found[f"{pool.name} mean per-class recall".strip()] = macro(list(map(summarise, classes.values())))
        return found


def build(place: Place) -> ZeroShot:
    """All sets that are there."""
    root = place.path(FOLDER)
    sets = [set_in(folder) for folder in folders_in(root)]
    if not sets:
        raise UserError(f"there are no folders in {root}; put sets of images there, {FOLDER}/SET/CLASS/*.jpg")
    return ZeroShot("zero-shot", root, sets, place)


def set_in(folder: Path) -> ImageSet:
    """The set of a folder."""
    classes = class_names(folder)
    return ImageSet(folder.name, tuple(images_of(folder, classes)), classes, templates_of(folder))


def images_of(folder: Path, classes: Iterable[str]) -> Iterator[Record]:
    """The images of a set, class by class."""
    for own in classes:
        files = pictures_in(folder / own)
        if not files:
            raise UserError(f"the class {own!r} in {folder} has no images ({', '.join(SUFFIXES)}); copy the set again")
        for file in files:
            photograph = Photograph(f"{folder.name}/{own}/{file}")
            yield Record(f"{own}/{file}", folder.name, (photograph,), (own,), own)


def pictures_in(folder: Path) -> list[str]:
    """The names of the image files in a folder."""
    return sorted(name for name in files_in(folder) if name.lower().endswith(SUFFIXES))


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, by number where they are called by numbers."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; docs/transfer.md says what belongs there")
    found = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    numbered = all(path.name.isdecimal() and path.name.isascii() and len(path.name) < 10 for path in found)
    return sorted(found, key=lambda path: (int(path.name) if numbered else 0, path.name))


def class_names(folder: Path) -> dict[str, str]:
    """The folders of a set's classes with the classes' names; at least two."""
    folders = [path.name for path in folders_in(folder)]
    if len(folders) < 2:
        raise UserError(f"{folder} has {len(folders)} folders of classes, and choosing needs at least 2")
    own = folder / "classes.txt"
    names = lines(own) if own.is_file() else known()["classes"].get(folder.name)
    if names is None:
        wordless = next((name for name in folders if NO_WORD.fullmatch(name)), None)
        if wordless:
            raise UserError(f"the name of the class {wordless!r} in {folder} isn't known; list all names in {own}")
        return {name: plain(name) for name in folders}
    by_name = {plain(name).lower(): name for name in names}
    if not own.is_file() and all(plain(name).lower() in by_name for name in folders):
        found = {name: by_name[plain(name).lower()] for name in folders}
    else:
        found = dict(zip(folders, names, strict=False))
    if not len(found) == len(folders) == len(names):
        raise UserError(f"{folder} has {len(folders)} folders for {len(names)} classes; copy the set again")
    return found


def templates_of(folder: Path) -> Sequence[str]:
    """The templates of a set."""
    own = folder / "templates.txt"
    templates = lines(own) if own.is_file() else known_templates(folder.name)
    if bare := next((template for template in templates if SLOT not in template), None):
        raise UserError(f"{own} has a template without {SLOT}: {bare[:80]!r}; put it where the class belongs")
    return templates


def known_templates(name: str) -> Sequence[str]:
    """CLIP's templates for a set of that name, or a plain one."""
    return known()["templates"].get(name, TEMPLATES)


def phrasings(name: str, templates: Sequence[str]) -> Iterator[str]:
    """A class in all templates."""
    return (" ".join(template.replace(SLOT, name).split()) for template in templates)


def plain(name: str) -> str:
    """A folder's name as words."""
    return " ".join(re.split(r"[\s_-]+", name)).strip()


def lines(path: Path) -> list[str]:
    """The lines of a text file that has some, none of them empty."""
    found = [line.strip() for line in read_text(path).splitlines()]
    if not found or not all(found):
        raise UserError(f"{path} has an empty line, or none at all; give one for each")
    return found


@cache
def known() -> dict[str, Any]:
    """CLIP's names of classes and templates, as CLIP_benchmark has them."""
    return json.loads(KNOWN.read_text(encoding="utf-8"))


BENCHMARK = BenchmarkSpec(
    name="zero-shot",
    about="the class of a photograph, by CLIP's names and templates",
    files=(),
    images=(FOLDER,),
    source="any folders of images by class, such as ImageNet's validation images or torchvision's data sets",
    licence="as of the images; names and templates MIT (LAION-AI/CLIP_benchmark)",
    build=build,
    photographs=None,
    sets={"imagenet1k": 50_000},
    published={"CLIP ViT-B/32, OpenAI": {"imagenet1k acc1": 63.2}},
)
