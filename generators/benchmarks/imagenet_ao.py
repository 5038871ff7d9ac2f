"""ImageNet-AO (Abbasi et al. 2023): pictures of things with unusual attributes; which of all compositions is it?

What its files look like isn't known for sure: folders "attribute_object" of pictures are read, or a table
`imagenet_ao.csv` of `filepath,attribute,object`.
"""

from collections.abc import Iterator
from pathlib import Path

from envs.common.errors import UserError
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.csv_file import read_csv

FOLDER, TABLE = "imagenet_ao/images", "imagenet_ao/imagenet_ao.csv"
CAPTION = "a photo of a {} {}"
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


def build(place: Place) -> Photographs:
    """Each picture with its own composition first, then all others."""
    table = place.path(TABLE)
    rows = list(from_table(table) if table.is_file() else from_folders(place.path(FOLDER)))
    captions = list(dict.fromkeys(CAPTION.format(*composition) for _, composition in rows))
    records = []
    for file, composition in rows:
        own = CAPTION.format(*composition)
        options = (own, *(caption for caption in captions if caption != own))
        records.append(Record(file, "composition", (Photograph(file),), options, " ".join(composition)))
    return Photographs("imagenet-ao", place.path(FOLDER), records, place)


def from_table(table: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """File, and attribute and object."""
    for row in read_csv(table, ("filepath", "attribute", "object")):
        yield row.text("filepath"), (row.text("attribute"), row.text("object"))


def from_folders(folder: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The same, from folders."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} and no table {TABLE}; get ImageNet-AO")
    for path in sorted(folder.iterdir()):
        attribute, _, thing = path.name.partition("_")
        if not path.is_dir() or not thing:
            raise UserError(f"{path.name!r} in {folder} is no folder called attribute_object; take it away")
        for file in sorted(path.iterdir()):
            if file.suffix.lower() in SUFFIXES:
                yield f"{path.name}/{file.name}", (attribute, thing.replace("_", " "))


BENCHMARK = BenchmarkSpec(
    name="imagenet-ao",
    about="things with unusual attributes, against all other compositions",
    files=(),
    images=(FOLDER,),
    source="the authors of Abbasi et al. 2023",
    licence="not stated",
    build=build,
    photographs=None,
)
