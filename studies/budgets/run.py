"""Renders what a study of compute needs, trains round after round, and writes its report."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import Sparing
from menagerie.studies.budgets.known import diverged, known_of
from menagerie.studies.budgets.rounds import next_runs
from menagerie.studies.budgets.setups import Run, Study, Trained
from menagerie.studies.grids.grid import Grid, cores, workers
from menagerie.studies.grids.run import render
from menagerie.studies.runs.cell import Job


def run(config: Study, grids: Mapping[str, Grid], out: Path) -> None:
    """Train what isn't finished, each round's runs at once, and write tables and report."""
    from menagerie.studies.budgets.report import publish
    from menagerie.studies.runs.dispatch import run_cells

    trained, sparing = trained_on(config, grids, out), Sparing()
    any_grid = next(iter(grids.values()))

    def show(job: Job | None = None) -> None:
        sparing(lambda: publish(trained))

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
    # What cells share stays: the same command with larger budgets goes on from there.
    print(f"report: {publish(trained)}")


def trained_on(config: Study, grids: Mapping[str, Grid], out: Path) -> Trained:
    """What turns runs into jobs, once all images and split files are there."""
    rendered = {split: render(grid, cores(grid)) for split, grid in grids.items()}
    files = {data: file for _, its in rendered.values() for data, file in its.items()}
    return Trained(config, grids, {split: identity for split, (identity, _) in rendered.items()}, files, out)


def described(runs: Iterable[Run]) -> str:
    """The budgets of some runs."""
    return ", ".join(map(str, sorted({own.steps for own in runs})))
