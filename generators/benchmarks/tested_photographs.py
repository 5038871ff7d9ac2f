"""Collects the photographs of COCO, Visual Genome and Flickr that tests show, so that training leaves them out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.sources.coco import photograph_numbers
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, KeptOut, PhotographId, coco_number
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_json_object
from menagerie.generators.sources.visual_genome import IMAGE_DATA, image_numbers

# COCO's validation sets and their numbers of images. 35 504 images of the 2014 set are in the training set of 2017.
VALIDATION: Mapping[str, int] = {"val2017": 5000, "val2014": 40504}

Numbers = Sequence[PhotographId]


def images_of_tests(place: Place, validation: Sequence[str] = ("val2017",), allow_unknown: bool = False) -> KeptOut:
    """The photographs of the COCO sets `validation` and of all benchmarks below a data root: training leaves them out.

    A benchmark's photographs are read from those of its annotation files that exist; its images needn't exist. If
    Visual Genome's `image_data.json` exists, photographs are also known by their numbers in COCO and Flickr. Missing
    information is recorded in `KeptOut.unknown`: sources that need it then raise, unless `allow_unknown` is set. Raises
    for annotation files that can't be read.
    """
    whole = {split: list(validation_numbers(place, split)) for split in validation}
    images = {number: f"COCO {split}" for split in reversed(whole) for numbers in whole[split] for number in numbers}
    for name in names():
        for number in photographs_of_benchmark(name, place):
            images.setdefault(number, f"in {name}")
    unknown = {}
    if lacking := [split for split, every in whole.items() if len(every) != VALIDATION[split]]:
        split, file = lacking[0], place.path(f"coco/annotations/captions_{lacking[0]}.json")
        unknown[VISUAL_GENOME] = (
            f"half of Visual Genome's photographs are COCO's, and {len(whole[split])} of the {VALIDATION[split]} of "
            f"COCO {split} are known, which training leaves out; put {file} there (cocodataset.org, Train/Val "
            "annotations)"
        )
    data = place.path(IMAGE_DATA)
    if data.is_file():
        images |= link_numbers(images, image_numbers(data).values())
    elif reason := next((reason for number, reason in images.items() if number.collection == VISUAL_GENOME), ""):
        unknown[COCO] = (
            f"photographs {reason} are Visual Genome's, and which of them COCO has too stands in {data}; put it there "
            "(homes.cs.washington.edu/~ranjay/visualgenome, image meta data)"
        )
    images |= link_numbers(images, (numbers for every in whole.values() for numbers in every))
    return KeptOut(images, unknown, allow_unknown)


def photographs_of_benchmark(name: str, place: Place) -> Iterator[PhotographId]:
    """Yield the photographs of a benchmark, from those of its annotation files that exist."""
    spec = load_benchmark(name)
    for file in (*spec.files, *spec.one_of):
        if spec.photographs is not None and place.path(file).exists():
            yield from spec.photographs(place.path(file))


def validation_numbers(place: Place, split: str) -> Iterator[Numbers]:
    """Yield the numbers of each photograph in a COCO validation set, from its annotations or, without them, images."""
    files = (place.path(f"coco/annotations/{kind}_{split}.json") for kind in ("captions", "instances"))
    path = next((file for file in files if file.is_file()), None)
    if path is not None:
        for entry in read_json_object(path).rows("images"):
            yield photograph_numbers(entry.field("file_name", str), entry)
        return
    for file in sorted(files_in(place.path(f"coco/{split}"))):
        if number := coco_number(file):
            yield (number,)


def link_numbers(images: Mapping[PhotographId, str], every: Iterable[Numbers]) -> dict[PhotographId, str]:
    """The other numbers of photographs that have one number in `images`, with that number's reason."""
    more: dict[PhotographId, str] = {}
    for numbers in every:
        reason = next((images[number] for number in numbers if number in images), "")
        more |= {number: reason for number in numbers if reason and number not in images}
    return more
