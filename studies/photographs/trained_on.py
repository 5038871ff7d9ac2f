"""What the trainings of a study of photographs, those that they start with included, had of their tests."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import COUNTED, Overlap, RecipeScenes, Training, measure_overlap
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.photographs.cells import called, tests_of, train_recipe
from menagerie.studies.photographs.data import Tested
from menagerie.studies.photographs.trainings import Training as Run
from menagerie.studies.scoring.trained_on import cells_of

HEADER = ("split", "trained on", "images drawn", "changed", "seed", "test", *COUNTED, "records of what it calls unseen")
SAYS = (
    "How much of each test its training had, of how many, by name: a photographed and a rendered cat are one animal, "
    "but their images are two. The numbers above leave out all records of pairs that a training had."
)


def rows_of(study: Any, runs: Iterable[Run]) -> Iterator[list[str]]:
    """Yield a row for each training, whatever its model, and each of its tests."""
    for run in dict.fromkeys(run._replace(model="") for run in runs):
        start = f", after {called(run.start)}" if run.start else ""
        place = [run.kind, called(run) + start, str(run.images or "all"), run.factor or DASH, str(run.seed)]
        for test in tests_of(study, run):
            for name, subset in test.subsets.items():
                had = covered_in(training_of(study, run), test, subset)
                cells = dict(zip((*COUNTED, "records"), cells_of(had), strict=True))
                yield [*place, name, *(cells | {"texts": DASH} if test.bare else cells).values()]


def training_of(study: Any, run: Run) -> Training:
    """Return what a run's training had, with that of the run that it starts from."""
    own = Training((RecipeScenes(train_recipe(study, run), run.images),))
    return own | training_of(study, run.start) if run.start else own


@cache
def covered_in(training: Training, test: Tested, subset: str) -> Overlap:
    return measure_overlap(training, read_split(test.file), subset)
