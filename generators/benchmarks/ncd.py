"""Composites of natural objects in unusual colours, from the "Natural Colors Dataset", as the DCSM paper tests them.

Files have names such as "red_apple_green_pear.png": two colours and two objects. The false caption exchanges the
colours. Captions name the left object first in one test and the right object first in the other. As in that paper's
code, mirrored images (MIRROR in capitals in their names) and files that aren't images are skipped; "silver_mirror" is a
normal object."""

import re

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.place import Place

FOLDER = "ncd/images"
IMAGE = re.compile(r"(?!.*MIRROR).+\.(?i:png|jpe?g|webp)", re.DOTALL)
NAME = re.compile(r"(?P<c1>[^_]+)_(?P<a>[^_]+)_(?P<c2>[^_]+)_(?P<b>[^_]+)\.\w+")
LEFT, RIGHT = "swap", "swap, right first"  # subsets 1 and 2 of the paper's code
CAPTION = "A picture of a {} {} and a {} {}"


def build(place: Place) -> ItemBenchmark:
    """Build the benchmark from all files of the folder; composites with two equal colours are left out. Each order of
    mention is a task."""
    folder = place.only(FOLDER)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; make the composites, or name where they are")
    records = []
    for file in sorted(filter(IMAGE.fullmatch, files_in(folder))):
        parts = NAME.fullmatch(file)
        if parts is None:
            raise UserError(f"{file!r} in {folder} isn't called COLOUR_OBJECT_COLOUR_OBJECT.png; take it out")
        c1, a, c2, b = (parts[name].replace("-", " ") for name in ("c1", "a", "c2", "b"))
        if c1 != c2:
            cluster = " ".join(sorted((a, b)))
            left_first = CAPTION.format(c1, a, c2, b), CAPTION.format(c2, a, c1, b)
            right_first = CAPTION.format(c2, b, c1, a), CAPTION.format(c1, b, c2, a)
            records.append(Record(file, LEFT, (Photograph(file),), left_first, cluster))
            records.append(Record(file, RIGHT, (Photograph(file),), right_first, cluster))
    return ItemBenchmark("ncd", FOLDER, records, place, figures=())


BENCHMARK = BenchmarkSpec(
    name="ncd",
    about="two natural objects in colours of their own or others, which the false caption exchanges",
    files=(),
    images=(FOLDER,),
    source="github.com/Raphoo/DCSM_Ideal_CLIP (NCD; made of the Natural Colors Dataset of Anwar et al. 2020)",
    licence="see the Natural Colors Dataset",
    build=build,
)
