"""Composites of natural things in unusual colours, "Natural Colors Dataset" side by side, as the DCSM paper tests them.

Files are called "red_apple_green_pear.png": two colours and two things. The false caption exchanges the colours.
"""

import re

from envs.common.errors import UserError
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record
from generators.benchmarks.registry import BenchmarkSpec

FOLDER = "ncd/images"
NAME = re.compile(r"(?P<c1>[^_]+)_(?P<a>[^_]+)_(?P<c2>[^_]+)_(?P<b>[^_]+)\.(png|jpe?g)")
CAPTION = "A picture of a {} {} and a {} {}"


def build(place: Place) -> Photographs:
    """All files of the folder; one of equal colours is no test and is left out."""
    folder = place.path(FOLDER)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; make the composites, or name where they are")
    records = []
    for file in sorted(path.name for path in folder.iterdir()):
        parts = NAME.fullmatch(file)
        if parts is None:
            raise UserError(f"{file!r} in {folder} isn't called COLOUR_THING_COLOUR_THING.png; take it out")
        c1, a, c2, b = (parts[name].replace("-", " ") for name in ("c1", "a", "c2", "b"))
        if c1 != c2:
            texts = (CAPTION.format(c1, a, c2, b), CAPTION.format(c2, a, c1, b))
            records.append(Record(file, "swap", (Photograph(file),), texts, " ".join(sorted((a, b)))))
    return Photographs("ncd", folder, records, place)


BENCHMARK = BenchmarkSpec(
    name="ncd",
    about="two natural things in colours of their own or others, which the false caption exchanges",
    files=(),
    images=(FOLDER,),
    source="made of the Natural Colors Dataset (Anwar et al. 2020) as DCSM's appendix describes",
    licence="see the Natural Colors Dataset",
    build=build,
    photographs=None,
)
