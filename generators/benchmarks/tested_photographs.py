"""Collects the photographs of COCO, Visual Genome and Flickr that tests show, so that training leaves them out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.sources.coco import photograph_numbers
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, KeptOut, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_json_object
from menagerie.generators.sources.visual_genome import IMAGE_DATA, image_numbers

ANNOTATIONS, VALIDATION = "coco/annotations/captions_val2017.json", 5000  # COCO val2017 and its number of images

Numbers = Sequence[PhotographId]


def images_of_tests(place: Place, allow_unknown: bool = False) -> KeptOut:
    """The photographs of COCO's validation set of 2017 and of all benchmarks below a data root: training leaves them
    out.

    They are read from annotation files that exist; images needn't exist. If Visual Genome's `image_data.json` exists,
    photographs are also known by their numbers in COCO and Flickr. Missing information is recorded in
    `KeptOut.unknown`: sources that need it then raise, unless `allow_unknown` is set. Raises for annotation files that
    can't be read.
    """
    file, validation = place.path(ANNOTATIONS), list[Numbers]()
    if file.is_file():
        entries = read_json_object(file).rows("images")
        validation += [photograph_numbers(entry.field("file_name", str), entry) for entry in entries]
    images = {number: "COCO val2017" for numbers in validation for number in numbers}
    for name in names():
        for number in photographs_of_benchmark(name, place):
            images.setdefault(number, f"in {name}")
    unknown = {}
    if len(validation) != VALIDATION:
        unknown[VISUAL_GENOME] = (
            f"half of Visual Genome's photographs are COCO's, and {len(validation)} of the {VALIDATION} of COCO "
            f"val2017 are known, which training leaves out; put {file} there (cocodataset.org, Train/Val annotations)"
        )
    data = place.path(IMAGE_DATA)
    if data.is_file():
        images |= link_numbers(images, image_numbers(data).values())
    elif reason := next((reason for number, reason in images.items() if number.collection == VISUAL_GENOME), ""):
        unknown[COCO] = (
            f"photographs {reason} are Visual Genome's, and which of them COCO has too stands in {data}; put it there "
            "(homes.cs.washington.edu/~ranjay/visualgenome, image meta data)"
        )
    images |= link_numbers(images, validation)
    return KeptOut(images, unknown, allow_unknown)


def photographs_of_benchmark(name: str, place: Place) -> Iterator[PhotographId]:
    """Yield the photographs of a benchmark, from those of its annotation files that exist."""
    spec = load_benchmark(name)
    for file in (*spec.files, *spec.one_of):
        if spec.photographs is not None and place.path(file).exists():
            yield from spec.photographs(place.path(file))


def link_numbers(images: Mapping[PhotographId, str], every: Iterable[Numbers]) -> dict[PhotographId, str]:
    """The other numbers of photographs that have one number in `images`, with that number's reason."""
    more: dict[PhotographId, str] = {}
    for numbers in every:
        reason = next((images[number] for number in numbers if number in images), "")
        more |= {number: reason for number in numbers if reason and number not in images}
    return more
