"""What is known of the runs that ended: validation, by which all that comes next is chosen."""

from menagerie.studies.budgets.rounds import Course, Known, course_of
from menagerie.studies.budgets.setups import Run, Setup, Trained, setups_of
from menagerie.studies.runs.cell import DIVERGED, Job
from menagerie.studies.runs.results import finished


def diverged(job: Job) -> bool:
    """Whether the loss, weights or scores of a run are no numbers, so that it has no result and never will."""
    return (job.folder / DIVERGED).exists()


def known_of(trained: Trained) -> Known:
    """Accuracy on validation of every run that ended, 0 of those whose loss is no number."""
    config, known = trained.config, {}
    for split in trained.grids:
        for model in config.models:
            for setup in setups_of(config, model):
                for seed in range(config.seeds):
                    known |= of_trunk(trained, split, setup, seed)
    return known


def of_trunk(trained: Trained, split: str, setup: Setup, seed: int) -> dict[Run, float]:
    """What is known of the budgets of one choice and seed; none after the first that has not ended."""
    known = {}
    for steps in trained.config.budgets:
        own = Run(split, setup, seed, steps)
        value = validation_of(trained.job(own))
        if value is None:
            break
        known[own] = value
    return known


def validation_of(job: Job) -> float | None:
    """Accuracy on validation of a run that ended; None of one that hasn't."""
    result = finished(job.folder)
    if result is not None:
        return float(result["subsets"]["validation"]["swap"]["accuracy"])
    return 0.0 if diverged(job) else None


def courses_of(trained: Trained) -> dict[tuple[str, str], Course]:
    """How far each model is at each split."""
    known = known_of(trained)
    return {
        (split, model): course_of(trained.config, known, split, model)
        for split in trained.grids
        for model in trained.config.models
    }
