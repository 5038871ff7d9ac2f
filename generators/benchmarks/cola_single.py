"""Cola's single-object setting (Ray et al. 2023): which images show an object with all of its attributes?

A file has captions ("square white plate") and images; each image has two rows of 0 and 1 that say of each caption
whether it is true of it, and whether the image is hard for it (it shows some of these words). As in ColaSingleObjAP of
scripts/eval.py of github.com/arijitray1993/COLA, a caption's score is the average precision over its hard images, and a
set's number is the mean over captions (mAP). Equal scores are one step of the precision-recall curve, so a constant
scorer has the share of true images. A caption without a true hard image is left out.

We haven't seen these files. Their script reads a list of captions and images, their README says an object with "labels"
and "data"; both are read. Images are looked for by the last part of their names.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import decode_json
from menagerie.generators.benchmarks.benchmark import Item, Outcome, Scores
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, PhotographId, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import FileRow, check_object, read_foreign_bytes

IMAGES = "cola/images"
FILES = {name: f"cola/COLA_singleobjects_benchmark_{name}.json" for name in ("GQA", "CLEVR", "PACO")}
SHOWS = {"GQA": VISUAL_GENOME, "PACO": COCO}  # whose photographs they are


class Single(ItemBenchmark):
    """Records of a caption and its hard images, of which the first are true."""

    def __init__(self, records: Mapping[Record, int], place: Place) -> None:
        """`records` have their numbers of true images."""
        super().__init__("cola-single", IMAGES, list(records), place, figures=())
        self.true = {(record.task, record.name): count for record, count in records.items()}

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """The average precision of the item's images."""
        true = np.arange(len(scores)) < self.true[item.task, item.record]
        value = average_precision(scores[:, 0], true)
        return Outcome(value, value, bool(np.isin(scores[true], scores[~true]).any()))


def average_precision(scores: Float[np.ndarray, " k"], true: Bool[np.ndarray, " k"]) -> float:
    """The mean over true ones of the share of true ones among those that score no lower."""
    return float(np.mean([true[scores >= score].mean() for score in scores[true]]))


def read_single(path: Path, part: str) -> Iterator[tuple[Record, int]]:
    """Yield the captions of a file with their hard images, and how many of these are true."""
    content = decode_json(read_foreign_bytes(path), path)
    named = dict(zip(("labels", "data"), content, strict=False)) if isinstance(content, list) else content
    whole = check_object(FileRow(path, "", named))
    labels = whole.texts("labels")
    rows = [FileRow(path, f"image {k}", entry) for k, entry in enumerate(whole.field("data", list))]
    for row in rows:
        binary = [row.content[k] for k in (-2, -1)] if isinstance(row.content, list) and len(row.content) > 2 else []
        if [len(its) if isinstance(its, list) else 0 for its in binary] != [len(labels)] * 2:
            raise row.error(f"is no list of an image and two rows of {len(labels)} numbers")
    for k, label in enumerate(labels):
        hard = sorted((row for row in rows if row.content[-1][k] == 1), key=lambda row: row.content[-2][k] != 1)
        count = sum(row.content[-2][k] == 1 for row in hard)
        if count:
            images = tuple(Photograph(row.file_name(0)) for row in hard)
            yield Record(f"{part} {k}", part, images, (label,)), count


def build(place: Place) -> Single:
    paths = {part: place.path(file) for part, file in FILES.items() if place.path(file).exists()}
    if not paths:
        raise UserError(f"there is none of {', '.join(FILES.values())} in {place.root}; get one")
    return Single(dict(its for part, path in paths.items() for its in read_single(path, part)), place)


def photographs(path: Path) -> Iterable[PhotographId]:
    part = next(part for part, file in FILES.items() if Path(file).name == path.name)
    images = dict.fromkeys(image.file for record, _ in read_single(path, part) for image in record.images)
    return file_numbers(SHOWS[part], path, images) if part in SHOWS else ()


BENCHMARK = benchmark_spec("cola-single", build, (IMAGES,), one_of=tuple(FILES.values()), photographs=photographs)
