"""CREPE (Ma et al. 2023): a region of a Visual Genome image, its caption, and several hard negatives.

Systematicity: the caption's compounds are seen or unseen in a training set (CC12M, YFCC15M or LAION-400M: figures are
for models trained on it alone). Negatives replace an atom ("atom"), compose two such captions ("comp"), or are of both
kinds ("combined"). Productivity: captions of 4 to 12 atoms; negatives replace an atom, swap two or negate.

An image is right if its caption ranks first (R@1 of the authors' crepe_eval_utils.py, whose other recalls aren't
reported). Their `argsort` leaves the order of equal scores open; here the caption, which is first, wins. The mean over
the files of productivity is ours.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.benchmark import first_of_best
from menagerie.generators.benchmarks.photographs import Box, ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import VISUAL_GENOME
from menagerie.generators.sources.rows import FileRow, parse_literal, read_csv

SIDES = ("x", "y", "width", "height")
COMPOUNDS = {f" {kind}": f"valid_hard_negs_{kind}" for kind in ("atom", "comp", "combined")}
SYSTEMATICITY = {
    f"{trained} {split}": f"crepe/syst_hard_negatives/syst_vg_hard_negs_{split}_compounds_in_{trained}.csv"
    for trained in ("cc12m", "yfcc", "laion")
    for split in ("seen", "unseen")
}
PRODUCTIVITY = {
    f"{kind} {atoms}": f"crepe/prod_hard_negatives/{kind}/prod_vg_hard_negs_{kind}_complexity_{atoms}.csv"
    for kind in ("atom", "swap", "negate")
    for atoms in range(4, 13)
}


def read_crepe(path: Path, part: str, columns: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records of a table, for each of `columns`, which have the negatives, those of a task of its own."""
    for row in read_csv(path, ("image_id", "caption", *SIDES, *columns.values())):
        image = Photograph(f"{row.whole_number('image_id')}.jpg", region(row))
        for kind, column in columns.items():
            texts = (row.text("caption"), *negatives(row, column))
            yield Record(f"{part}{kind} {row.place}", f"{part}{kind}", (image,), texts, image.file)


def region(row: FileRow) -> Box:
    """The box of a record."""
    sides = row._replace(content={side: parse_literal(row.text(side)) for side in SIDES})
    return Box(*(round(sides.number(side)) for side in SIDES))


def negatives(row: FileRow, column: str) -> tuple[str, ...]:
    """The list of texts in a cell, which may be empty: then the caption has no rival, and officially ranks first."""
    return () if parse_literal(row.text(column)) == [] else row.texts(column)


crepe = partial(benchmark_of_files, images="crepe/images", shows=VISUAL_GENOME)
first_of_all = partial(ItemBenchmark, rules=first_of_best)
BENCHMARK_CREPE_SYSTEMATICITY = crepe(
    "crepe-systematicity",
    SYSTEMATICITY,
    partial(read_crepe, columns=COMPOUNDS),
    kind=partial(first_of_all, figures=()),
)
BENCHMARK_CREPE_PRODUCTIVITY = crepe(
    "crepe-productivity",
    PRODUCTIVITY,
    partial(read_crepe, columns={"": "hard_negs"}),
    kind=partial(first_of_all, figures=("macro over files",)),
)
