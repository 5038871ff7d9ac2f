"""VL-CheckList (Zhao et al. 2022): objects, attributes and relations of Visual Genome, SWiG and HAKE.

Lists of `[image, {"POS": [...], "NEG": [...]}]`, of which the first of each is scored. The official code takes the
first 1000 records of a file and passes over missing images; all are scored here, and the first 1000 beside them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envs.common.errors import UserError
from generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from generators.benchmarks.photographs import Photograph, Photographs, Place, Record, by_group, macro
from generators.benchmarks.registry import BenchmarkSpec
from generators.sources.json_file import Entry, Row, checked, read_json_rows
from generators.sources.kept_out import VISUAL_GENOME, PhotographId, coco_number, file_numbers

FOLDER, IMAGES = "vl_checklist/data", "vl_checklist/images"
FIRST = 1000


class VLCheckList(Photographs):
    """Groups are files, such as "Attribute/vg/color"."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The mean over files, of each kind (the first folder) and of all, and of their first 1000 records in order."""
        parts = by_group(items, outcomes)
        first = [its[:FIRST] for its in parts.values()]
        kinds: dict[str, list[Summary]] = {}
        for name, its in parts.items():
            kinds.setdefault(name.partition("/")[0], []).append(summarise(its))
        return {
            **{kind: macro(summaries) for kind, summaries in kinds.items()},
            "macro over files": macro(list(map(summarise, parts.values()))),
            f"macro over files, first {FIRST}": macro(list(map(summarise, first))),
            "micro": summarise(outcomes),
        }


def build(place: Place) -> VLCheckList:
    """All files of its folder; images lie in folders that their paths name (vg/, swig/, hake/)."""
    folder = place.path(FOLDER)
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not files:
        raise UserError(f"there are no JSON files in {folder}; put VL-CheckList's data there")
    records = [record for file in files for record in read_part(file, folder)]
    return VLCheckList("vl-checklist", place.path(IMAGES), records, place)


def read_part(file: Path, folder: Path) -> list[Record]:
    """The records of one file."""
    group = file.relative_to(folder).with_suffix("").as_posix()
    return [read(row, group) for row in read_json_rows(file, 2)]


def read(row: Row, group: str) -> Record:
    """One record."""
    image, texts = row.text(0), checked(Entry(row.file, row.place, row.content[1]))
    true, false = (texts.texts(key)[0] for key in ("POS", "NEG"))
    return Record(f"{group} {row.place}", group, (Photograph(image),), (true, false), image)


def shown(folder: Path) -> Iterator[PhotographId]:
    """The photographs of Visual Genome and COCO in all files; those of SWiG and most of HAKE are of neither."""
    for file in sorted(folder.rglob("*.json")):
        for row in read_json_rows(file, 2):
            image = row.text(0)
            if number := coco_number(image):
                yield number
            elif any(part.lower().startswith(("vg", "hcvrd")) for part in image.split("/")[:-1]):
                yield from file_numbers(VISUAL_GENOME, file, [image])


BENCHMARK = BenchmarkSpec(
    name="vl-checklist",
    about="an object, attribute or relation of a photograph against a false one",
    files=(FOLDER,),
    images=(IMAGES,),
    source="github.com/om-ai-lab/VL-CheckList (data/ and the links of its README)",
    licence="not stated; images: Visual Genome, SWiG, HAKE",
    build=build,
    photographs=shown,
)
