"""Renders what a study of compute needs, trains round after round, and writes its report."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from envs.common.errors import UserError
from envs.common.progress import Sparing
from studies.budgets.rounds import Known, course_of, next_runs
from studies.budgets.setups import Run, Study, Trained, setups_of
from studies.grids.grid import Grid, cores, workers
from studies.grids.run import render
from studies.runs.cell import DIVERGED, Job, finished


def run(config: Study, grids: Mapping[str, Grid], out: Path) -> None:
    """Train what isn't finished, each round's runs at once, and write tables and report."""
    from studies.budgets.report import publish
    from studies.runs.dispatch import run_cells
    from studies.runs.folder import provenance
    from studies.runs.shared import clear_shared

    trained, notes, sparing = trained_on(config, grids, out), provenance(), Sparing()
    any_grid = next(iter(grids.values()))

    def show(job: Job | None = None) -> None:
        sparing(lambda: publish(trained, notes))

    while waiting := next_runs(config, known_of(trained), tuple(grids)):
        jobs = [trained.job(own) for own in waiting]
        print(f"{len(jobs)} runs of {described(waiting)} steps", flush=True)
        show()
        try:
            run_cells(jobs, any_grid.cluster, workers(any_grid), out, show)
        except UserError as error:
            if not any(diverged(job) for job in jobs):
                raise
            print(f"{error}; it counts as a run that gets nothing right on validation, and the others go on")
    clear_shared(out)
    print(f"report: {publish(trained, notes)}")


def trained_on(config: Study, grids: Mapping[str, Grid], out: Path) -> Trained:
    """What turns runs into jobs, once all images and split files are there."""
    rendered = {split: render(grid, cores(grid)) for split, grid in grids.items()}
    files = {data: file for _, its in rendered.values() for data, file in its.items()}
    return Trained(config, grids, {split: identity for split, (identity, _) in rendered.items()}, files, out)


def described(runs: Iterable[Run]) -> str:
    """The budgets of some runs."""
    return ", ".join(map(str, sorted({own.steps for own in runs})))


def diverged(job: Job) -> bool:
    """Whether the loss of a run is no number, so that it has no result and never will."""
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


def of_trunk(trained: Trained, split: str, setup: object, seed: int) -> dict[Run, float]:
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


def courses_of(trained: Trained) -> dict[tuple[str, str], object]:
    """How far each model is at each split."""
    known = known_of(trained)
    return {
        (split, model): course_of(trained.config, known, split, model)
        for split in trained.grids
        for model in trained.config.models
    }
