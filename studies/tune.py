"""Tunes every model alike: as many trials over the same space, judged on validation alone.

    python studies/tune.py --preset smoke
    python studies/tune.py                       # 12 trials a model on the hardest cell, an hour or two
    python studies/binding_grid.py --tuned runs/tune-laptop/best.json

Searched: learning rate, weight decay, warm-up, depth and width of the towers within one budget of
parameters, share of lone animals in a batch and share of the steps that show them only. Every
trial trains on the same split for the same number of steps; the first one of every model is the
grid's own recipe. A model's best trials are run with further seeds, and the best mean gives its
recipe. Stopped and started again, it asks the sampler for the same trials and skips those that
are finished.
"""

import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from envs.common.errors import UserError, run_command
from generators.cluster.options import Cluster
from generators.splits.recipe import SplitRecipe
from studies.binding_grid import PRESETS as GRIDS
from studies.grids.cells import cells as grid_cells
from studies.grids.cells import conditions, towers
from studies.grids.grid import Grid, cores, workers
from studies.grids.launch import check as check_grid
from studies.grids.run import render
from studies.grids.tuned_recipes import SEARCHED
from studies.runs.cell import Job
from studies.runs.command_line import parse

# A model, a point of the space and a seed -> the training run.
JobOf = Callable[[str, Mapping[str, Any], int], Job]
# Shares of the steps, the first ones, that show lone animals only.
PHASES = (0.0, 0.25, 0.5)


def hardest(preset: str) -> Grid:
    """The hardest cell of a grid's preset: its fewest pairs, no hard negatives, one seed."""
    grid = GRIDS[preset]
    return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,), seeds=1, tuned="")


@dataclass(frozen=True)
class Config:
    """One tuning study."""

    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=lambda: hardest("laptop"))
    """The cell that trials train on; `recipe` gives what isn't searched."""
    trials: int = 12
    """Trials of each model."""
    at_once: int = 2
    """Trials asked for at once; decides what the sampler knows, whatever the number of workers."""
    finalists: int = 3
    """Best trials of each model that are run with other seeds too; the best mean wins."""
    final_seeds: int = 3
    """Seeds of a finalist, the trial's own among them."""
    architectures: tuple[str, ...] = ("micro", "mini", "broad")
    """Towers to choose from: one layer, two layers, one wider layer."""
    parameters: int = 450_000
    """The most parameters that any model may have with any of them."""
    sampler_seed: int = 0
    """Seed of Optuna's TPE sampler."""


PRESETS: dict[str, Config] = {
    "smoke": Config(
        grid=hardest("smoke"),
        trials=2,
        at_once=1,
        finalists=1,
        final_seeds=2,
        architectures=("nano",),
        parameters=100_000,
    ),
    "laptop": Config(),
}


def check(config: Config) -> None:
    """Raise on what can't work, before anything is made."""
    for name in ("trials", "at_once", "finalists", "final_seeds"):
        if getattr(config, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(config, name)}")
    if len(config.grid.pairs) != 1 or len(config.grid.hard_negatives) != 1 or config.grid.seeds != 1:
        raise UserError("tuning needs one cell: one value of --pairs and --hard-negatives, and --seeds 1")
    if config.grid.tuned or config.grid.pretrained:
        raise UserError("tuning is for training from scratch: leave out --tuned and --pretrained")
    if not config.architectures:
        raise UserError("--architectures needs one or more towers")
    for architecture in config.architectures:
        check_grid(replace(config.grid, architecture=architecture))
        for model in config.grid.models:
            check_budget(config, model, architecture)


def check_budget(config: Config, model: str, architecture: str) -> None:
    """Raise if a model has more parameters than all may have."""
    from models.contract import build

    grid = replace(config.grid, architecture=architecture)
    scorer = build(model, towers(grid, model), grid.scorers.of(model))
    count = sum(parameter.numel() for parameter in scorer.parameters())
    if count > config.parameters:
        raise UserError(
            f"{model} on {architecture} has {count} parameters, more than --parameters {config.parameters}; "
            "raise it for all models, or choose other --architectures"
        )


def ranges(config: Config) -> dict[str, tuple[float, float]]:
    """The numbers of the space, from the least to the most."""
    return {
        "learning_rate": (3e-4, 1e-2),
        "weight_decay": (1e-2, 1.0),
        "warmup": (20, max(20, config.grid.recipe.steps // 5)),
        "singles_share": (0.3, 0.97),
    }


def first_point(config: Config) -> dict[str, Any]:
    """The grid's own recipe, as far as the space holds it: the first trial of every model."""
    own = asdict(config.grid.recipe) | {"architecture": config.grid.architecture}
    numbers = {name: own[name] for name, (low, high) in ranges(config).items() if low <= (own[name] or 0) <= high}
    choices = {"single_object_phase": PHASES, "architecture": config.architectures}
    return numbers | {name: own[name] for name, values in choices.items() if own[name] in values}


def suggest(trial: Any, config: Config) -> None:
    """Let Optuna draw a point of the space, the same kind for every model, into `trial.params`."""
    space = ranges(config)
    trial.suggest_float("learning_rate", *space["learning_rate"], log=True)
    trial.suggest_float("weight_decay", *space["weight_decay"], log=True)
    trial.suggest_int("warmup", *space["warmup"])
    trial.suggest_float("singles_share", *space["singles_share"])
    trial.suggest_categorical("single_object_phase", PHASES)
    trial.suggest_categorical("architecture", config.architectures)


def tune_model(config: Config, model: str, job_of: JobOf, out: Path) -> list[dict[str, Any]]:
    """All trials of one model: what was tried and what validation said."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=config.sampler_seed, n_startup_trials=max(4, config.trials // 3))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial(first_point(config))
    rows: list[dict[str, Any]] = []
    while len(rows) < config.trials:
        asked = [study.ask() for _ in range(min(config.at_once, config.trials - len(rows)))]
        for trial in asked:
            suggest(trial, config)
        jobs = [job_of(model, trial.params, 0) for trial in asked]
        unfinished = {job.folder: job for job in jobs if validation(job) is None}  # TPE may repeat itself
        train_all(config.grid, list(unfinished.values()), out)
        for trial, job in zip(asked, jobs, strict=True):
            found = validation(job)
            study.tell(trial, found, state=None if found is not None else optuna.trial.TrialState.FAIL)
            rows.append({"model": model, "trial": trial.number, "validation": found, **trial.params})
    return rows


def train_all(grid: Grid, jobs: list[Job], out: Path) -> None:
    """Train; a run that fails (it may diverge) is told and left out, the others end all the same."""
    from studies.runs.dispatch import run_cells

    try:
        run_cells(jobs, grid.cluster, workers(grid), out, lambda job: None)
    except UserError as error:
        if grid.cluster.engine != "none":  # there, the others have ended
            print(f"failed: {error}", flush=True)
            return
        for job in [job for job in jobs if validation(job) is None]:
            try:
                run_cells([job], grid.cluster, 1, out, lambda job: None)
            except UserError as error:
                print(f"failed: {error}", flush=True)


def repeat_finalists(config: Config, rows: list[dict[str, Any]], job_of: JobOf, out: Path) -> None:
    """Run each model's best trials with further seeds and add the mean of all to their rows, as "repeated".

    One seed's validation pairs are few: the best of many trials is partly luck.
    """
    finals = [row for model in config.grid.models for row in leaders(rows, model)[: config.finalists]]
    seeds = range(config.final_seeds)
    jobs = {(row["model"], row["trial"]): [job_of(row["model"], row, seed) for seed in seeds] for row in finals}
    waiting = {job.folder: job for its in jobs.values() for job in its if validation(job) is None}
    train_all(config.grid, list(waiting.values()), out)
    for row in rows:
        found = [validation(job) for job in jobs.get((row["model"], row["trial"]), ())]
        row["repeated"] = statistics.mean(found) if found and None not in found else None


def leaders(rows: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """A model's trials that ended, best first."""
    ended = [row for row in rows if row["model"] == model and row["validation"] is not None]
    return sorted(ended, key=lambda row: -row["validation"])


def jobs_for(config: Config, identity: str, files: dict[SplitRecipe, Path], out: Path) -> JobOf:
    """What makes the training run of a model at a point of the space, with a seed."""

    def job_of(model: str, point: Mapping[str, Any], seed: int) -> Job:
        recipe = replace(config.grid.recipe, **{name: point[name] for name in SEARCHED})
        grid = replace(
            config.grid, models=(model,), architecture=point["architecture"], recipe=recipe, seeds=config.final_seeds
        )
        cell = grid_cells(grid, identity)[seed]
        return Job(cell, files[cell.data.recipe], out)

    return job_of


def validation(job: Job) -> float | None:
    """Accuracy on the validation subset, the only one that tuning looks at; None if unfinished."""
    from studies.runs.cell import finished

    result = finished(job.folder)
    return None if result is None else result["subsets"]["validation"]["swap"]["accuracy"]


def best(rows: list[dict[str, Any]], grid: Grid) -> dict[str, Any]:
    """For each model its best finalist, and what it was found on, as `binding_grid.py --tuned` reads it."""
    found: dict[str, Any] = {}
    for row in rows:
        if row["repeated"] is None:
            continue
        if row["model"] not in found or row["repeated"] > found[row["model"]]["validation"]:
            found[row["model"]] = {
                "validation": row["repeated"],
                "architecture": row["architecture"],
                "recipe": asdict(grid.recipe) | {name: row[name] for name in SEARCHED},
                "tuned_for": conditions(grid, row["model"]),
            }
    return found


def run(config: Config, out: Path) -> None:
    """Tune all models; write trials, the best of each and the report."""
    from envs.common.files import write_text
    from studies.analysis.format import write_trials
    from studies.runs.folder import provenance
    from studies.tuning.report import write_report

    job_of = jobs_for(config, *render(replace(config.grid, seeds=config.final_seeds), cores(config.grid)), out)
    rows: list[dict[str, Any]] = []
    for model in config.grid.models:
        rows += tune_model(config, model, job_of, out)
        write_trials(out / "trials.csv", rows)
    repeat_finalists(config, rows, job_of, out)
    write_trials(out / "trials.csv", rows)
    chosen = best(rows, config.grid)
    if missing := sorted(set(config.grid.models) - chosen.keys()):
        raise UserError(f"every trial of {', '.join(missing)} failed; see above")
    write_text(out / "best.json", json.dumps(chosen, indent=1) + "\n")
    for model, found in chosen.items():
        print(f"{model}: validation {found['validation']:.1%} with {found['architecture']}, {found['recipe']}")
    print(f"report: {write_report(out, rows, provenance())}")


def main() -> None:
    """Parse, check, run."""
    preset, config = parse(PRESETS, "laptop", __doc__)
    check(config)
    from studies.runs.folder import run_folder

    # What doesn't decide results may differ from run to run.
    same = replace(config, grid=replace(config.grid, out=None, store=Path(), workers=0, cluster=Cluster()))
    with run_folder(config.grid.out or Path(f"runs/tune-{preset}"), same, frozenset()) as out:
        run(config, out)


if __name__ == "__main__":
    run_command(main)
