"""Zero-shot classification on torchvision's data sets, in the folder where torchvision keeps them.

Nothing is downloaded. Splits are read as torchvision reads them, with CLIP's templates. `menagerie import-hf`
makes folders of classes of the sets that torchvision keeps in one file: CIFAR, STL-10, MNIST.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import AS_THEY_ARE, clip_names, known_templates, read_list
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.benchmarks.zero_shot import ImageSet, ZeroShot
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import is_text, read_json_object

FOLDER = "torchvision"
# The names of a set's classes, and each image with its class number.
Labelled = tuple[Sequence[str], Sequence[tuple[str, int]]]


def build(place: Place) -> ZeroShot:
    """Build the benchmark from the sets that are there."""
    root = place.only(FOLDER)
    sets = [image_set(name, SETS[name][1](root, "test")) for name in sets_in(root)]
    return ZeroShot("zero-shot-torchvision", FOLDER, sets, place)


def sets_in(root: Path) -> list[str]:
    """The sets that are there; raises if none is."""
    if not (found := [name for name, (folder, _) in SETS.items() if (root / folder).exists()]):
        raise UserError(f"there is none of {', '.join(folder for folder, _ in SETS.values())} in {root}; get one")
    return found


def image_set(name: str, labelled: Labelled) -> ImageSet:
    """Make a set under CLIP_benchmark's name for it."""
    given, images = labelled
    if len(given) < 2 or not all(map(is_text, given)):
        raise UserError(f"{name}: its {len(given)} classes aren't all named, or are too few; get its files again")
    classes = {str(k): text if name in AS_THEY_ARE else text.replace("_", " ") for k, text in enumerate(given)}
    if strange := next((image for image, label in images if str(label) not in classes), None):
        raise UserError(f"{name}: the class of {strange[:99]!r} is none of the {len(classes)}; get its files again")
    records = tuple(
        Record(image, name, (Photograph(image),), (classes[str(label)],), str(label)) for image, label in images
    )
    return ImageSet(name, records, classes, known_templates(name))


def food101(root: Path, part: str) -> Labelled:
    """Read Food-101, which lists the images of each class."""
    split = read_json_object(root / f"food-101/meta/{part}.json")
    classes = sorted(split.content)
    images = ((image, number) for number, name in enumerate(classes) for image in split.texts(name))
    return (classes, [(f"food-101/images/{image}.jpg", number) for image, number in images])


def pets(root: Path, part: str) -> Labelled:
    """Read Oxford-IIIT Pet, whose lines have an image, its class counted from 1, and more."""
    path = root / f"oxford-iiit-pet/annotations/{'trainval' if part == 'train' else part}.txt"
    rows = [PET.match(line) for line in read_list(path)]
    if None in rows:
        raise UserError(f"{path} has a line without the number of a class, line {rows.index(None) + 1}; get it again")
    images = [(f"oxford-iiit-pet/images/{row[1]}.jpg", int(row[2]) - 1) for row in rows if row]
    return (clip_names()["classes"]["pets"], images)


def textures(root: Path, part: str) -> Labelled:
    """Read the first partition of DTD, whose list has lines CLASS/FILE."""
    files = read_list(root / f"dtd/dtd/labels/{part}1.txt")
    classes = sorted({file.partition("/")[0] for file in files})
    return (classes, [(f"dtd/dtd/images/{file}", classes.index(file.partition("/")[0])) for file in files])


def aircraft(root: Path, part: str) -> Labelled:
    """Read FGVC-Aircraft by variants: one file lists the classes, another has lines of an image and its class."""
    folder = root / "fgvc-aircraft-2013b/data"
    classes = read_list(folder / "variants.txt")
    numbers = {name: number for number, name in enumerate(classes)}
    rows = [line.partition(" ") for line in read_list(folder / f"images_variant_{part}.txt")]
    images = [(f"fgvc-aircraft-2013b/data/images/{image}.jpg", numbers.get(name, -1)) for image, _, name in rows]
    return (classes, images)


PET = re.compile(r"(\S+)\s+([0-9]{1,9})(?!\S)")
# CLIP_benchmark's name of a set -> its folder, and its reader of a part (train, val, test).
SETS: Mapping[str, tuple[str, Callable[[Path, str], Labelled]]] = {
    "dtd": ("dtd", textures),
    "fgvc_aircraft": ("fgvc-aircraft-2013b", aircraft),
    "food101": ("food-101", food101),
    "pets": ("oxford-iiit-pet", pets),
}

BENCHMARK = benchmark_spec("zero-shot-torchvision", build, (FOLDER,))
