"""Zero-shot classification on torchvision's data sets, in the folder where torchvision keeps them.

Nothing is downloaded. Test splits are read as torchvision reads them, with CLIP's templates. No pickle is opened: CIFAR
is read in its binary form (`cifar-10-binary.tar.gz`, `cifar-100-binary.tar.gz`).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import lines
from menagerie.generators.benchmarks.known_classes import AS_THEY_ARE, known, known_templates
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.zero_shot import ImageSet, ZeroShot
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.raw_images import RawImages, content_of, labels_in, names_in, same_number
from menagerie.generators.sources.rows import is_text, read_json

FOLDER = "torchvision"


class Labelled(NamedTuple):
    """A data set: the names of its classes, and each image with its class number."""

    classes: Sequence[str]
    images: Sequence[tuple[str, int]]


class TorchvisionSets(ZeroShot):
    """Zero-shot classification on sets some of which have many images in one file."""

    reader = RawImages


def build(place: Place) -> TorchvisionSets:
    root = place.only(FOLDER)
    check_pickles(root)
    sets = [image_set(name, read(root)) for name, (folder, read) in SETS.items() if (root / folder).exists()]
    if not sets:
        raise UserError(f"there is none of {', '.join(folder for folder, _ in SETS.values())} in {root}; get one")
    return TorchvisionSets("zero-shot-torchvision", FOLDER, sets, place)


def check_pickles(root: Path) -> None:
    """Raise if CIFAR exists only as Python pickles, which could run any code."""
    for pickled, (binary, archive) in PICKLED.items():
        if (root / pickled).exists() and not (root / binary).exists():
            raise UserError(
                f"{root / pickled} holds pickles, which may run code when they are opened; get {archive} from "
                f"www.cs.toronto.edu/~kriz/cifar.html for {root / binary}, or take the folder away"
            )


def image_set(name: str, labelled: Labelled) -> ImageSet:
    """Make a set under CLIP_benchmark's name for it."""
    given = labelled.classes
    if len(given) < 2 or not all(map(is_text, given)):
        raise UserError(f"{name}: its {len(given)} classes aren't all named, or are too few; get its files again")
    names = given if name in AS_THEY_ARE else [text.replace("_", " ") for text in given]
    classes = dict(zip(map(str, range(len(names))), names, strict=True))
    if strange := next((image for image, label in labelled.images if str(label) not in classes), None):
        raise UserError(f"{name}: the class of {strange[:99]!r} is none of the {len(classes)}; get its files again")
    records = tuple(
        Record(image, name, (Photograph(image),), (classes[str(label)],), str(label))
        for image, label in labelled.images
    )
    return ImageSet(name, records, classes, known_templates(name))


def cifar(root: Path, file: str, names: str) -> Labelled:
    """Read the binary form of CIFAR, which has a label before each image."""
    images = zip(names_in(root, file), labels_in(root, file), strict=True)
    return Labelled(lines(root / names), list(images))


def with_labels(root: Path, file: str, labels: str, header: int, first: int, classes: Sequence[str]) -> Labelled:
    """Read raw images and their labels, which are in another file behind `header` bytes and count from `first`."""
    names, numbers = names_in(root, file), [label - first for label in content_of(root / labels)[header:]]
    same_number(root / labels, numbers, names)
    return Labelled(classes, list(zip(names, numbers, strict=True)))


def stl10(root: Path) -> Labelled:
    """Read STL-10, whose labels count from 1."""
    folder = "stl10_binary"
    classes = lines(root / folder / "class_names.txt")
    return with_labels(root, f"{folder}/test_X.bin", f"{folder}/test_y.bin", 0, 1, classes)


def mnist(root: Path) -> Labelled:
    """Read MNIST's unpacked files."""
    folder = "MNIST/raw/t10k"
    return with_labels(
        root, f"{folder}-images-idx3-ubyte", f"{folder}-labels-idx1-ubyte", 8, 0, known()["classes"]["mnist"]
    )


def food101(root: Path) -> Labelled:
    """Read Food-101, which lists the images of each class."""
    split = read_json(root / "food-101/meta/test.json")
    classes = sorted(split.content)
    images = ((image, number) for number, name in enumerate(classes) for image in split.texts(name))
    return Labelled(classes, [(f"food-101/images/{image}.jpg", number) for image, number in images])


def pets(root: Path) -> Labelled:
    """Read Oxford-IIIT Pet, whose lines have an image, its class counted from 1, and more."""
    path = root / "oxford-iiit-pet/annotations/test.txt"
    rows = [line.split() for line in lines(path)]
    if wrong := next((row for row in rows if len(row) < 2 or not is_number(row[1])), None):
        raise UserError(f"{path} has a line without the number of a class: {' '.join(wrong)[:80]!r}; get it again")
    images = [(f"oxford-iiit-pet/images/{image}.jpg", int(number) - 1) for image, number, *_ in rows]
    return Labelled(known()["classes"]["pets"], images)


def textures(root: Path) -> Labelled:
    """Read the first partition of DTD, whose list has lines CLASS/FILE."""
    files = lines(root / "dtd/dtd/labels/test1.txt")
    classes = sorted({file.partition("/")[0] for file in files})
    return Labelled(classes, [(f"dtd/dtd/images/{file}", classes.index(file.partition("/")[0])) for file in files])


def aircraft(root: Path) -> Labelled:
    """Read FGVC-Aircraft with its variants as classes: one file lists the classes, another has lines of an image and
    its class."""
    folder = root / "fgvc-aircraft-2013b/data"
    classes = lines(folder / "variants.txt")
    numbers = {name: number for number, name in enumerate(classes)}
    rows = [line.partition(" ") for line in lines(folder / "images_variant_test.txt")]
    images = [(f"fgvc-aircraft-2013b/data/images/{image}.jpg", numbers.get(name, -1)) for image, _, name in rows]
    return Labelled(classes, images)


def is_number(text: str) -> bool:
    """Whether a text is a whole number with few digits."""
    return text.isdecimal() and text.isascii() and len(text) < 10


PICKLED = {
    "cifar-10-batches-py": ("cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    "cifar-100-python": ("cifar-100-binary", "cifar-100-binary.tar.gz"),
}
# CLIP_benchmark's name of a set -> its folder, and its reader.
SETS: Mapping[str, tuple[str, Callable[[Path], Labelled]]] = {
    "cifar10": (
        "cifar-10-batches-bin",
        lambda root: cifar(root, "cifar-10-batches-bin/test_batch.bin", "cifar-10-batches-bin/batches.meta.txt"),
    ),
    "cifar100": (
        "cifar-100-binary",
        lambda root: cifar(root, "cifar-100-binary/test.bin", "cifar-100-binary/fine_label_names.txt"),
    ),
    "dtd": ("dtd", textures),
    "fgvc_aircraft": ("fgvc-aircraft-2013b", aircraft),
    "food101": ("food-101", food101),
    "mnist": ("MNIST", mnist),
    "pets": ("oxford-iiit-pet", pets),
    "stl10": ("stl10_binary", stl10),
}

BENCHMARK = BenchmarkSpec(
    name="zero-shot-torchvision",
    about="the class of a photograph of torchvision's data sets, by CLIP's names and templates",
    files=(),
    images=(FOLDER,),
    source="torchvision.datasets, downloaded to its root; CIFAR's binary form: www.cs.toronto.edu/~kriz/cifar.html",
    licence="as of each data set; names and templates MIT (LAION-AI/CLIP_benchmark)",
    build=build,
    photographs=None,
    sets={
        **{"cifar10": 10_000, "cifar100": 10_000, "dtd": 1880, "fgvc_aircraft": 3333},
        **{"food101": 25_250, "mnist": 10_000, "pets": 3669, "stl10": 8000},
    },
)
