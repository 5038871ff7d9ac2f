"""How much of their tests the trainings of a study of photographs had, with those that they start from."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import COUNTED, Overlap, RecipeScenes, Training, measure_overlap
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.photographs.cells import data_name, tests_of_run, train_recipe
from menagerie.studies.photographs.data import TestedSplit
from menagerie.studies.photographs.trainings import TransferRun as Run
from menagerie.studies.scoring.trained_on import coverage_cells

HEADER = ("split", "trained on", "images drawn", "changed", "seed", "test", *COUNTED, "records of what it calls unseen")
SAYS = (
    "How much of each test its training had, by name: a photographed and a rendered cat are the same animal, but not "
    "the same image. The numbers above leave out all records of animal pairs that a training had."
)


def trained_on_rows(study: Any, runs: Iterable[Run]) -> Iterator[list[str]]:
    """Yield a row for each training, whatever its model, and each of its tests."""
    for run in dict.fromkeys(run._replace(model="") for run in runs):
        start = f", after {data_name(run.start)}" if run.start else ""
        place = [run.kind, data_name(run) + start, str(run.images or "all"), run.factor or DASH, str(run.seed)]
        for test in tests_of_run(study, run):
            for name, subset in test.subsets.items():
                had = covered_subset(training_with_start(study, run), test, subset)
                cells = dict(zip((*COUNTED, "records"), coverage_cells(had), strict=True))
                yield [*place, name, *(cells | {"texts": DASH} if test.bare else cells).values()]


def training_with_start(study: Any, run: Run) -> Training:
    """Return what a run was trained on, with what the run that it starts from was trained on."""
    own = Training((RecipeScenes(train_recipe(study, run), run.images),))
    return own | training_with_start(study, run.start) if run.start else own


@cache
def covered_subset(training: Training, test: TestedSplit, subset: str) -> Overlap:
    return measure_overlap(training, read_split(test.file), subset)
