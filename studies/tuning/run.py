"""Runs all trials of a tuning study, and writes what came out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from optuna.trial import FrozenTrial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.studies.analysis.tables import write_trials
from menagerie.studies.grids.grid import cores, workers
from menagerie.studies.grids.run import render
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.shared import clear_shared
from menagerie.studies.trials.launch import Resources, run_trials
from menagerie.studies.trials.queue import Trials
from menagerie.studies.tuning.report import write_report
from menagerie.studies.tuning.results import Row, best, failures, rows_of
from menagerie.studies.tuning.searches import identity, repeats, searches
from menagerie.studies.tuning.space import Tuning
from menagerie.studies.tuning.worker import Worker, run_worker


def run(config: Tuning, study: str, out: Path) -> None:
    """Run all trials that still wait; write trials, the best of each model and the report."""
    config = replace(config, storage=config.storage or str(out / "journal.log"))
    first, second = searches(config, study), repeats(config, study)
    stages = [list(first.values()), list(second.values())]
    trials = Trials(config.storage)
    check_none_left_out(trials.names(), f"{study} search ", config.grid.models)
    for model in config.grid.models:
        for search in (first[model], second[model]):
            trials.open(search, identity(config, model))
    worker, grid = Worker(config, study, out, *split_files(config)), config.grid
    resources = Resources(workers(grid), grid.threads, grid.device, grid.cluster)
    run_trials(trials, stages, run_worker, worker, resources, out)
    if trials.all_ended(f"{study} "):  # another command may be searching for further models in this folder
        clear_shared(out)
    publish(config, out, {model: (trials.all(first[model]), trials.all(second[model])) for model in grid.models})


def check_none_left_out(names: Sequence[str], start: str, models: Sequence[str]) -> None:
    """Raise for models that were searched for before and are not requested: the files would lose them."""
    searched = [name.removeprefix(start) for name in names if name.startswith(start)]
    if others := [model for model in searched if model not in models]:
        raise UserError(
            f"there are searches of {', '.join(others)} too, which the results would lose; name all in --models"
        )


def split_files(config: Tuning) -> tuple[str, dict[CellData, Path]]:
    """Render what all seeds show, with all cores; the store's identity and the split files."""
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = config.grid if config.grid.cluster.engine == "none" else replace(config.grid, workers=0)
    return render(replace(config.grid, seeds=config.final_seeds), cores(here))


def publish(config: Tuning, out: Path, trials: dict[str, tuple[list[FrozenTrial], list[FrozenTrial]]]) -> None:
    """Write `trials.csv`, `best.json` and the report from the trials of each model and their repeats; then raise if
    one has no recipe."""
    rows: list[Row] = [row for model, its in trials.items() for row in rows_of(model, *its)]
    if not any(row["options"] for row in rows):
        rows = [{name: value for name, value in row.items() if name != "options"} for row in rows]
    write_trials(out / "trials.csv", rows)
    chosen = best(rows, config.grid)
    if chosen:
        write_record(out / "best.json", chosen, indent=1)
    for model, recipe in chosen.items():
        print(f"{model}: validation {recipe['validation']:.1%} with {recipe['architecture']}, {recipe['recipe']}")
    tried = {model: its for model, (its, _) in trials.items()}
    failed = {name: why for model, its in tried.items() for name, why in failures(model, its).items()}
    print(f"report: {write_report(out, rows, tried, failed, config)}")
    if missing := sorted(trials.keys() - chosen.keys()):
        raise UserError(f"every trial of {', '.join(missing)} failed; the report has the reasons")
