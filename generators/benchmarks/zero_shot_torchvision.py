"""Zero-shot classification on torchvision's data sets, in the folder where torchvision keeps them.

Nothing is downloaded. Test splits are read as torchvision reads them, with CLIP's templates. No pickle is opened: CIFAR
is read in its binary form (`cifar-10-binary.tar.gz`, `cifar-100-binary.tar.gz`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import AS_THEY_ARE, clip_names, known_templates, read_list
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.benchmarks.zero_shot import ImageSet, ZeroShot
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.raw_images import RawImages, raw_records
from menagerie.generators.sources.rows import is_text, read_foreign_bytes, read_json_object

FOLDER = "torchvision"
CIFAR10, CIFAR100, STL10, DIGITS = "cifar-10-batches-bin", "cifar-100-binary", "stl10_binary", "MNIST/raw/t10k"


class Labelled(NamedTuple):
    """A data set: the names of its classes, and each image with its class number."""

    classes: Sequence[str]
    images: Sequence[tuple[str, int]]


class TorchvisionSets(ZeroShot):
    """Zero-shot classification on sets some of which have many images in one file."""

    reader = RawImages


def build(place: Place) -> TorchvisionSets:
    """Build the benchmark from the sets that are there. CIFAR may be there as Python pickles too, but not alone."""
    root = place.only(FOLDER)
    for pickled, binary in PICKLED.items():
        if (root / pickled).exists() and not (root / binary).exists():
            raise UserError(
                f"{root / pickled} holds pickles, which may run code when they are opened; get the binary version of "
                f"www.cs.toronto.edu/~kriz/cifar.html for {root / binary}, or take the folder away"
            )
    sets = [image_set(name, read(root)) for name, (folder, read) in SETS.items() if (root / folder).exists()]
    if not sets:
        raise UserError(f"there is none of {', '.join(folder for folder, _ in SETS.values())} in {root}; get one")
    return TorchvisionSets("zero-shot-torchvision", FOLDER, sets, place)


def image_set(name: str, labelled: Labelled) -> ImageSet:
    """Make a set under CLIP_benchmark's name for it."""
    given = labelled.classes
    if len(given) < 2 or not all(map(is_text, given)):
        raise UserError(f"{name}: its {len(given)} classes aren't all named, or are too few; get its files again")
    classes = {str(k): text if name in AS_THEY_ARE else text.replace("_", " ") for k, text in enumerate(given)}
    if strange := next((image for image, label in labelled.images if str(label) not in classes), None):
        raise UserError(f"{name}: the class of {strange[:99]!r} is none of the {len(classes)}; get its files again")
    records = tuple(
        Record(image, name, (Photograph(image),), (classes[str(label)],), str(label))
        for image, label in labelled.images
    )
    return ImageSet(name, records, classes, known_templates(name))


def raw(root: Path, file: str, classes: str, labels: str = "", header: int = 0, first: int = 0) -> Labelled:
    """Read raw images. `classes` is the file of their classes' names, or the set whose names CLIP knows. Their labels
    are before each image, or behind `header` bytes of the file `labels`, and count from `first`."""
    images = raw_records(root / file, file)
    content = read_foreign_bytes(root / labels)[header:] if labels else images["lead"][:, -1].tolist()
    if len(content) != len(images):
        raise UserError(f"{root / labels} has {len(content)} labels for {len(images)} images; get it again")
    called = clip_names()["classes"].get(classes) or read_list(root / classes)
    return Labelled(called, [(f"{file}#{number}", label - first) for number, label in enumerate(content)])


def food101(root: Path) -> Labelled:
    """Read Food-101, which lists the images of each class."""
    split = read_json_object(root / "food-101/meta/test.json")
    classes = sorted(split.content)
    images = ((image, number) for number, name in enumerate(classes) for image in split.texts(name))
    return Labelled(classes, [(f"food-101/images/{image}.jpg", number) for image, number in images])


def pets(root: Path) -> Labelled:
    """Read Oxford-IIIT Pet, whose lines have an image, its class counted from 1, and more."""
    path = root / "oxford-iiit-pet/annotations/test.txt"
    rows = [PET.match(line) for line in read_list(path)]
    if None in rows:
        raise UserError(f"{path} has a line without the number of a class, line {rows.index(None) + 1}; get it again")
    images = [(f"oxford-iiit-pet/images/{row[1]}.jpg", int(row[2]) - 1) for row in rows if row]
    return Labelled(clip_names()["classes"]["pets"], images)


def textures(root: Path) -> Labelled:
    """Read the first partition of DTD, whose list has lines CLASS/FILE."""
    files = read_list(root / "dtd/dtd/labels/test1.txt")
    classes = sorted({file.partition("/")[0] for file in files})
    return Labelled(classes, [(f"dtd/dtd/images/{file}", classes.index(file.partition("/")[0])) for file in files])


def aircraft(root: Path) -> Labelled:
    """Read FGVC-Aircraft by variants: one file lists the classes, another has lines of an image and its class."""
    folder = root / "fgvc-aircraft-2013b/data"
    classes = read_list(folder / "variants.txt")
    numbers = {name: number for number, name in enumerate(classes)}
    rows = [line.partition(" ") for line in read_list(folder / "images_variant_test.txt")]
    images = [(f"fgvc-aircraft-2013b/data/images/{image}.jpg", numbers.get(name, -1)) for image, _, name in rows]
    return Labelled(classes, images)


PET = re.compile(r"(\S+)\s+([0-9]{1,9})(?!\S)")
# Folders of pickles -> those of the same set's binary form.
PICKLED = {"cifar-10-batches-py": CIFAR10, "cifar-100-python": CIFAR100}
# CLIP_benchmark's name of a set -> its folder, and its reader.
SETS: Mapping[str, tuple[str, Callable[[Path], Labelled]]] = {
    "cifar10": (CIFAR10, lambda root: raw(root, f"{CIFAR10}/test_batch.bin", f"{CIFAR10}/batches.meta.txt")),
    "cifar100": (CIFAR100, lambda root: raw(root, f"{CIFAR100}/test.bin", f"{CIFAR100}/fine_label_names.txt")),
    "dtd": ("dtd", textures),
    "fgvc_aircraft": ("fgvc-aircraft-2013b", aircraft),
    "food101": ("food-101", food101),
    "mnist": (
        "MNIST",
        lambda root: raw(root, f"{DIGITS}-images-idx3-ubyte", "mnist", f"{DIGITS}-labels-idx1-ubyte", header=8),
    ),
    "pets": ("oxford-iiit-pet", pets),
    "stl10": (
        STL10,
        lambda root: raw(root, f"{STL10}/test_X.bin", f"{STL10}/class_names.txt", f"{STL10}/test_y.bin", first=1),
    ),
}

BENCHMARK = benchmark_spec("zero-shot-torchvision", build, (FOLDER,))
