"""ARO (Yuksekgonul et al. 2023, "When and why vision-language models behave like bags-of-words"): what its parts share.

Records of Visual Genome show a part of an image, in a box, with a true and a false caption.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from menagerie.generators.benchmarks.photographs import Box, Photograph, Place, Record
from menagerie.generators.sources.json_file import Entry, read_json_list
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, file_numbers

IMAGES = "aro/images"
SOURCE = "github.com/mertyg/vision-language-models-are-bows (links in dataset_zoo/aro_datasets.py)"
LICENCE = "MIT; images: Visual Genome, CC BY 4.0"
SIDES = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def boxed_records(place: Place, file: str, group: Callable[[Entry], str]) -> list[Record]:
    """The records of a file; one of images is the cluster of those that show parts of it."""
    records = []
    for entry in read_json_list(place.path(file)):
        image = entry.text("image_path").rpartition("/")[2]
        box = Box(*(round(entry.number(side)) for side in SIDES))
        texts = (entry.text("true_caption"), entry.text("false_caption"))
        records.append(Record(entry.place, group(entry), (Photograph(image, box),), texts, image))
    return records


def shown(path: Path) -> Iterator[PhotographId]:
    """The photographs of a file."""
    return file_numbers(VISUAL_GENOME, path, (entry.text("image_path") for entry in read_json_list(path)))
