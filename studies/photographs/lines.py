"""The records of the finished runs, by what was trained on what; those of pairs that a training showed are left out."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe, roles_of
from menagerie.studies.analysis.paired_bootstrap import Points, read_points
from menagerie.studies.photographs.apart import Shared
from menagerie.studies.photographs.collection import Photographs
from menagerie.studies.photographs.jobs import Jobs, train_recipe
from menagerie.studies.photographs.measures import merged, of_test, without_pairs
from menagerie.studies.photographs.trainings import Material, Training, all_trainings
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import collect, finished


class Study(NamedTuple):
    """What a report is made of."""

    config: Any
    material: Material
    photographs: Photographs
    jobs: Jobs
    audit: list[Shared]
    lacking: list[str]
    """What can't be answered, and why."""
    samples: dict[str, str]
    """Sample images of each test, as data URIs."""
    notes: dict[str, Any]

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.jobs.out


def done_jobs(study: Study) -> dict[Training, Job]:
    """The finished runs."""
    found = {}
    for training in all_trainings(study.config, study.material):
        job = study.jobs.job(training)
        if job is not None and finished(job.folder) is not None:
            found[training] = job
    return found


def results_of(done: Mapping[Training, Job]) -> list[dict[str, Any]]:
    """Their results."""
    return collect(job.folder for job in done.values())


class Lines:
    """The records of all seeds of each training, for which all must be finished."""

    def __init__(self, study: Study, done: Mapping[Training, Job]) -> None:
        self.study, self.done = study, done

    def points(self, training: Training, label: str, *others: Training) -> Points:
        """The records of one test, of pairs that neither the training nor any of `others` shows; empty before all seeds
        are finished."""
        seeds = [training._replace(seed=seed) for seed in range(self.study.config.seeds)]
        if not all(its in self.done for its in seeds):
            return {}
        points = of_test(merged(points_of(self.done[its].folder, its.seed) for its in seeds), label)
        compared = [training, *others, *(its.start for its in (training, *others) if its.start)]

        def seen(seed: int) -> set[str]:
            return set().union(*(self.trained_pairs(its._replace(seed=seed)) for its in compared))

        return without_pairs(points, seen)

    def trained_pairs(self, training: Training) -> frozenset[str]:
        """The animal pairs that a training of binding shows, as records name them; none of a spatial one, which is
        compared with itself alone."""
        recipe = train_recipe(self.study.config, training, self.study.jobs.worlds)
        return pairs_of(recipe) if isinstance(recipe, BindingRecipe) else frozenset()

    def images(self, training: Training) -> int:
        """Distinct images that a run was trained on."""
        return int((finished(self.done[training].folder) or {})["train_images"])


@cache  # what is finished doesn't change, and the report is written anew after many a run
def points_of(folder: Path, seed: int) -> Points:
    """The records of a run."""
    return read_points([(seed, folder)])


@cache
def pairs_of(recipe: BindingRecipe) -> frozenset[str]:
    """The pairs that a recipe trains on."""
    roles, _ = roles_of(recipe, load_world(recipe.world))
    return frozenset(" + ".join(sorted(pair)) for pair in roles.train)
