"""Zero-shot classification (Radford et al. 2021): images are compared with class names in templates. And ImageNet-AO.

Images lie at `zero_shot/SET/CLASS/*.jpg`, as in torchvision's ImageFolder. Class names are read from `SET/classes.txt`
(`class_folders.py`) and templates from `SET/templates.txt`, with {c} for the class. Without these files they are CLIP's
if SET is a name of CLIP_benchmark (imagenet1k, imagenet-a, pets, ...); for other sets, folders have the names of their
classes and the only template is "a photo of a {c}.".

A class has a text for each template. For models that embed texts, a class's embeddings are scaled to length 1 and
averaged; for others its scores are averaged. Without this ensemble (`Place.ensemble`) several templates give way to the
plain one.

ImageNet-AO (Abbasi et al. 2023) has pictures of objects with unusual attributes, to be matched with all compositions.
The layout of its files isn't known for sure; here they are in folders named "attribute_object".
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary
from menagerie.generators.benchmarks.class_folders import (
    SLOT,
    TEMPLATES,
    folder_classes,
    folders_in,
    known_templates,
    read_list,
)
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool, Recall, task_of
from menagerie.generators.benchmarks.photographs import Photograph, Record, macro_mean, summaries_by_task
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.place import Place

FOLDER = "zero_shot"
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
ENSEMBLED = ("zero-shot", "zero-shot-torchvision")  # benchmarks whose classes have several templates
MEASURES = (Recall("acc1", True, 1), Recall("acc5", True, 5))


class ImageSet(NamedTuple):
    """Images of one data set, and its classes."""

    name: str
    records: tuple[Record, ...]
    """The images; each record's cluster is the key of its class."""
    classes: Mapping[str, str]
    """The names of all classes, by key."""
    templates: Sequence[str]


class ZeroShot(MatrixBenchmark):
    """Zero-shot classification: each set of images is a pool whose texts are class names."""

    measures = MEASURES

    def __init__(self, name: str, folder: str, sets: Sequence[ImageSet], place: Place) -> None:
        """See `PhotographBenchmark`; the images of `sets` are below `folder`."""
        super().__init__(name, folder, [record for one in sets for record in one.records], place)
        here = set(self.records)
        self.pools = [self._pool(one, tuple(r for r in one.records if r in here), place) for one in sets]

    def _pool(self, images: ImageSet, records: tuple[Record, ...], place: Place) -> Pool:
        templates = images.templates if place.ensemble or len(images.templates) == 1 else TEMPLATES
        phrased = (
            [" ".join(template.replace(SLOT, name).split()) for template in templates]
            for name in images.classes.values()
        )
        texts = tuple(tuple(Caption(text, place.parse(text)) for text in its) for its in phrased)
        places = {key: column for column, key in enumerate(images.classes)}
        pairs = tuple((row, places[record.cluster]) for row, record in enumerate(records))
        return Pool(images.name, records, tuple(self.numbers[r.images[0]] for r in records), texts, pairs)

    def measures_of(self, pool: Pool) -> Sequence[Recall]:
        """The share of images whose class is the best one and, of five classes or more, is among the best five."""
        return [measure for measure in MEASURES if measure.k == 1 or measure.k <= len(pool.texts)]

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """For each set, its measures, and the first of them averaged over classes (mean per-class recall)."""
        found = dict(super().headlines(items, outcomes))
        classes = summaries_by_task(items, outcomes, attrgetter("task", "cluster"))
        for pool in self.pools:
            own = [part for (task, _), part in classes.items() if task == task_of(pool.name, MEASURES[0])]
            found[f"{pool.name} mean per-class recall".strip()] = macro_mean(own)
        return found


def build(place: Place) -> ZeroShot:
    root, given = place.only(FOLDER, whole=False), place.below(FOLDER)
    if deep := next((name for name in given if "/" in name), ""):
        raise UserError(f"--images {given[deep]}: give a whole set, --images {FOLDER}/{deep.partition('/')[0]}=FOLDER")
    folders = {} if given and not root.is_dir() else {folder.name: folder for folder in folders_in(root)}
    folders |= {name: place.only(path) for name, path in given.items()}
    if not folders:
        raise UserError(f"there are no folders in {root}; put sets of images there, {FOLDER}/SET/CLASS/*.jpg")
    return ZeroShot("zero-shot", FOLDER, [set_in(name, folder) for name, folder in folders.items()], place)


def set_in(set_name: str, folder: Path) -> ImageSet:
    """The set in a folder, or, as ObjectNet unpacks, in its folder `images`, which has folders and no images itself."""
    inner, below = "", folder / "images"
    if below.is_dir() and folders_in(below) and not any(name.lower().endswith(SUFFIXES) for name in files_in(below)):
        folder, inner = below, "images/"
    listed = folder / "templates.txt"
    classes = folder_classes(folder, set_name)
    templates = read_templates(listed) if listed.is_file() else known_templates(set_name, classes)
    records = (
        Record(f"{name}/{file}", set_name, (Photograph(f"{set_name}/{inner}{name}/{file}"),), (name,), name)
        for name in classes
        for file in class_images(folder / name)
    )
    return ImageSet(set_name, tuple(records), classes, templates)


def class_images(folder: Path) -> list[str]:
    """The images of a class; raises if there are none."""
    files = sorted(name for name in files_in(folder) if name.lower().endswith(SUFFIXES))
    if not files:
        raise UserError(
            f"the class {folder.name!r} in {folder.parent} has no images ({', '.join(SUFFIXES)}); copy the set again"
        )
    return files


def read_templates(path: Path) -> list[str]:
    """Read the templates in a file; raises if one has no place for the class."""
    templates = read_list(path)
    if bare := next((template for template in templates if SLOT not in template), None):
        raise UserError(f"{path} has a template without {SLOT}: {bare[:80]!r}; put it where the class belongs")
    return templates


BENCHMARK = benchmark_spec("zero-shot", build, (FOLDER,))


AO_FOLDER = "imagenet_ao/images"


def build_ao(place: Place) -> ZeroShot:
    """Build ImageNet-AO as a `ZeroShot`, because there are too many compositions to list in every record."""
    root, records = place.only(AO_FOLDER), list[Record]()
    for folder in folders_in(root):
        attribute, _, obj = folder.name.partition("_")
        if not obj:
            raise UserError(f"{folder.name!r} in {root} isn't called attribute_object; take it away")
        name = f"{attribute} {obj.replace('_', ' ')}"
        files = (f"{folder.name}/{file}" for file in class_images(folder))
        records += [Record(file, "", (Photograph(file),), (name,), name) for file in files]
    classes = {record.cluster: record.cluster for record in records}
    if len(classes) < 2:
        raise UserError(f"imagenet-ao has {len(classes)} compositions, and choosing needs 2; get it again")
    images = ImageSet("", tuple(records), classes, (f"a photo of a {SLOT}",))
    return ZeroShot("imagenet-ao", AO_FOLDER, [images], place)


BENCHMARK_IMAGENET_AO = benchmark_spec("imagenet-ao", build_ao, (AO_FOLDER,))
