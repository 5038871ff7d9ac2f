"""VL-CheckList (Zhao et al. 2022): objects, attributes and relations of Visual Genome, SWiG and HAKE.

56 files, each a list of records `[image, {"POS": [...], "NEG": [...]}]`; a record's first POS and first NEG are scored.
The files are those in the repository's corpus.json, which leaves out three of 59 (Object/Size/swig_size/swig_place). A
file's own path decides in which folder its images are. All records are scored here, and each file's first 1000 are
reported too. The official code fills up its 1000 with later records if images are missing; here nothing takes their
place, so that scores with and without them are of the same records.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Summary, summarise
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record, group_by_task, macro_mean
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.sources.kept_out import VISUAL_GENOME, PhotographId, coco_number, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, read_lists

FOLDER, IMAGES = "vl_checklist/data", "vl_checklist/images"
FIRST = 1000
ROOTS = ("swig", "hake", "vg")  # folders of images
SETS = ("swig", "hake", "vaw", "vg")  # names of the data sets; files that name none belong to the last one
ASPECTS = {"Location": ("center", "margin", "mid"), "Size": ("large", "medium", "small")}
PARTS = (
    *("hake_{aspect}/hake_obj", "vg_{aspect}/vg_obj", "vg_{aspect}/vg_subj"),
    *(f"swig_{{aspect}}/swig_{role}/swig_{role}" for role in ("agent", "destination", "item", "tool")),
)
FILES = (
    *(
        f"Object/{aspect}/{part.format(aspect=aspect.lower())}_{value}"
        for aspect, values in ASPECTS.items()
        for part, value in product(PARTS, values)
    ),
    *(
        f"Attribute/{name}/{kind}"
        for name in ("vaw", "vg")
        for kind in ("action", "color", "material", "size", "state")
    ),
    *("Relation/hake_action", "Relation/swig_action", "Relation/vg/action", "Relation/vg/spatial"),
)


class VLCheckList(ItemBenchmark):
    """VL-CheckList; tasks are files, such as "Attribute/vg/color"."""

    as_stored = True

    def __init__(self, records: Sequence[Record], place: Place) -> None:
        """See `ItemBenchmark`; the first records of a file are counted before any are left out."""
        super().__init__("vl-checklist", IMAGES, records, place)
        names: dict[str, list[str]] = {}
        for record in records:
            names.setdefault(record.task, []).append(record.name)
        self.early = {name for part in names.values() for name in part[:FIRST]}

    def content(self) -> Iterator[str]:
        """Yield also how the first records are counted: results that counted them otherwise are made anew."""
        yield from super().content()
        yield f"first {FIRST} of each file, with those left out"

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """Dimensions averaged as the authors do, of all records and files' first 1000; means over files and records."""
        parts = group_by_task(items, list(zip(items, outcomes, strict=True)))
        whole = {name: summarise([o for _, o in part]) for name, part in parts.items()}
        first = {name: summarise([o for item, o in part if item.record in self.early]) for name, part in parts.items()}
        return {
            **dimensions(whole),
            **{f"{name}, first {FIRST}": part for name, part in dimensions(first).items()},
            "macro over files": macro_mean(list(whole.values())),
            f"macro over files, first {FIRST}": macro_mean(list(first.values())),
            "micro": summarise(outcomes),
        }


def dimensions(files: Mapping[str, Summary]) -> dict[str, Summary]:
    """Average files per data set, data sets per kind ("color"), and kinds per dimension: as corpus.json and radar.py of
    the official repository (om-ai-lab/VL-CheckList), but their code stops at kinds, and the mean over kinds is ours."""
    tree: dict[str, dict[str, dict[str, list[Summary]]]] = {}
    for name, summary in files.items():
        dimension, kind = name.partition("/")[0], name.rpartition("/")[2].rpartition("_")[2]
        sets = tree.setdefault(dimension, {}).setdefault(kind, {})
        sets.setdefault(first_in_path(name, SETS), []).append(summary)
    return {
        dimension: macro_mean(
            [macro_mean([macro_mean(summaries) for summaries in sets.values()]) for sets in kinds.values()]
        )
        for dimension, kinds in tree.items()
    }


def first_in_path(file: str, names: Sequence[str]) -> str:
    """The first of `names` that occurs in a file's path; else the last name."""
    return next((name for name in names if name in file), names[-1])


def build(place: Place) -> VLCheckList:
    records = []
    for name, row, image in read_checklist(place.path(FOLDER), FILES):
        true, false = (row.nested(1).texts(key)[0] for key in ("POS", "NEG"))
        records.append(Record(f"{name} {row.place}", name, (Photograph(image),), (true, false), image))
    return VLCheckList(records, place)


def read_checklist(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, FileRow, str]]:
    """Yield the rows of some files, each with the file and the path of its image below the folder of all images."""
    for name in names:
        for row in read_lists(folder / f"{name}.json", 2):
            yield name, row, f"{first_in_path(name, ROOTS)}/{row.text(0)}"


def checklist_photographs(folder: Path) -> Iterator[PhotographId]:
    """The photographs of Visual Genome and COCO in existing files; SWiG's, and most of HAKE's, are in neither."""
    for _, row, image in read_checklist(folder, (name for name in FILES if (folder / f"{name}.json").exists())):
        if number := coco_number(image):
            yield number
        elif image.startswith("vg/") or "hcvrd" in image.split("/"):
            yield from file_numbers(VISUAL_GENOME, row.file, [image])


BENCHMARK = benchmark_spec("vl-checklist", build, (IMAGES,), files=(FOLDER,), photographs=checklist_photographs)
