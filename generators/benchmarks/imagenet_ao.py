"""ImageNet-AO (Abbasi et al. 2023): pictures of things with unusual attributes, to be matched with all compositions.

The layout of its files isn't known for sure. Two are accepted: folders of pictures named "attribute_object", or a table
`imagenet_ao.csv` with the columns `filepath,attribute,object`.
"""

from collections.abc import Iterator
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import is_litter
from menagerie.generators.benchmarks.known_classes import SLOT
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.zero_shot import ImageSet, ZeroShot, pictures_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_csv

FOLDER, TABLE = "imagenet_ao/images", "imagenet_ao/imagenet_ao.csv"
TEMPLATE = f"a photo of a {SLOT}"


def build(place: Place) -> ZeroShot:
    """Build the benchmark. It is a `ZeroShot`, because each picture is compared with all compositions, which are too
    many to list in every record."""
    table = place.path(TABLE)
    rows = list(from_table(table) if table.is_file() else from_folders(place.only(FOLDER)))
    records = tuple(Record(file, "", (Photograph(file),), (name,), name) for file, name in rows)
    compositions = {name: name for _, name in rows}
    if len(compositions) < 2:
        raise UserError(f"imagenet-ao has {len(compositions)} compositions, and choosing needs 2; get it again")
    return ZeroShot("imagenet-ao", FOLDER, [ImageSet("", records, compositions, (TEMPLATE,))], place)


def from_table(table: Path) -> Iterator[tuple[str, str]]:
    """Yield each file and its composition, such as "red cat"."""
    for row in read_csv(table, ("filepath", "attribute", "object")):
        yield row.text("filepath"), f"{row.text('attribute')} {row.text('object')}"


def from_folders(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file and its composition, from the name of its folder."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} and no table {TABLE}; get ImageNet-AO")
    for path in sorted(path for path in folder.iterdir() if not is_litter(path.name)):
        attribute, _, thing = path.name.partition("_")
        if not path.is_dir() or not thing:
            raise UserError(f"{path.name!r} in {folder} is no folder called attribute_object; take it away")
        files = pictures_in(path)
        if not files:
            raise UserError(f"the composition {path.name!r} in {folder} has no images; copy the set again")
        for file in files:
            yield f"{path.name}/{file}", f"{attribute} {thing.replace('_', ' ')}"


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
