"""Tunes every model alike: as many trials over the same space, judged on validation alone.

    python studies/tune.py --preset smoke
    python studies/tune.py     # 12 trials a model, an hour or two; with --preset breadth every scorer
    python studies/binding_grid.py --tuned runs/tune-laptop/best.json

Searched: learning rate, weight decay, warm-up, depth and width of the towers within one budget of
parameters, share of single-object scenes in a batch, share of the steps that show them only, and what a model's
spec names of its own options; a trial of more parameters is pruned. Every trial trains on the same split for the
same number of steps; the first one of every model has the grid's own values where it names some. A model's best
trials are run with further seeds, and the best mean gives its recipe.

Trials are kept in a journal file or a database, which optuna-dashboard opens. The same command, on any machine
that reaches them, joins in; with --cluster slurm --workers 8 the workers are tasks of a job array. A batch of
--at-once trials is drawn from what came out before it: the same, however often it is stopped, with any workers. Each
model's search is its own: with further models behind --models the same folder goes on, and skips what is finished.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import FIRST, MODEL, PLACE, WHAT
from menagerie.envs.core.processes import in_child
from menagerie.envs.core.validation import FIRST_SEED, RATE, RUNS, SEEDS, SHARE, Range, Several, validate
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS as BINDING
from menagerie.studies.cluster.options import Cluster
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.grid import Grid
from menagerie.studies.frame.overrides import check_files
from menagerie.studies.grids.grid import chosen_alone
from menagerie.studies.runs.command_line import only, parse
from menagerie.studies.spatial_grid import PRESETS as SPATIAL


def hardest(grid: Grid) -> Grid:
    """The hardest cell of a grid: its fewest pairs, no hard negatives, one seed."""
    return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,), seeds=1, tuned="")


@dataclass(frozen=True)
class Config:
    """One tuning study."""

    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=lambda: hardest(BINDING["laptop"]))
    """The cell that trials train on; `recipe` gives what isn't searched."""
    trials: Annotated[int, WHAT, FIRST, RUNS] = 12
    """Trials of each model."""
    at_once: Annotated[int, WHAT, RUNS] = 2
    """Trials of a model in a batch: each is drawn from what came out before the batch and from nothing in it, and
    waits for the end of the batch before. So as many workers can work on a model, and what is drawn doesn't
    depend on their number."""
    finalists: Annotated[int, WHAT, RUNS] = 3
    """Best trials of each model that are run with other seeds too; the best mean wins."""
    final_seeds: Annotated[int, WHAT, SEEDS] = 3
    """Seeds of a finalist, the trial's own among them."""
    architectures: Annotated[tuple[str, ...], MODEL, FIRST] = ("micro", "mini", "broad")
    """Towers to choose from: one layer, two layers, one wider layer."""
    learning_rates: Annotated[tuple[float, ...], WHAT, RATE] = (3e-4, 1e-2)
    """The least and the greatest learning rate; one value isn't searched."""
    singles_shares: Annotated[tuple[float, ...], WHAT, SHARE, Several(1)] = (0.3, 0.97)
    """The least and the greatest share of a batch that shows one animal alone; one value isn't searched."""
    parameters: Annotated[int, MODEL, Range(1, 10**15)] = 450_000
    """The most parameters that any model may have in any trial."""
    sampler_seed: Annotated[int, WHAT, FIRST_SEED] = 0
    """Seed of what the searches draw."""
    storage: Annotated[str, PLACE] = ""
    """Where trials are kept: a journal file, or the URL of a database (postgresql+psycopg://...) for workers
    on many machines; empty takes journal.log in the folder of the results."""
    study: Annotated[str, PLACE] = ""
    """Name of the study in its storage; empty takes tune-PRESET."""

    def with_recipe(self, recipe: SplitRecipe) -> "Config":
        """The study on the split of a recipe of the user's."""
        return replace(self, grid=self.grid.with_recipe(recipe))


PRESETS: dict[str, Config] = {
    "smoke": Config(
        grid=hardest(BINDING["smoke"]),
        trials=2,
        at_once=1,
        finalists=1,
        final_seeds=2,
        architectures=("nano",),
        parameters=100_000,
    ),
    "laptop": Config(),
    "spatial": Config(grid=hardest(SPATIAL["laptop"])),
    # At 32 px and in a third of the steps, so that every scorer can have as many trials.
    "breadth": Config(grid=hardest(BINDING["breadth"]), trials=8),
    "breadth-spatial": Config(grid=hardest(SPATIAL["breadth"]), trials=8),
    # For sample_efficiency.py: its setting with most data, in which single animals always are half of a batch.
    "twelve": Config(
        grid=replace(
            hardest(BINDING["laptop"]),
            **{"world": "twelve", "resolution": 32, "pairs": (1.0,), "views": 8, "test_views": 2, "test_scenes": 200},
            base=BindingRecipe(reserve=0.31, validation=0.14, singles_views=8),
            recipe=Recipe(steps=1000, decay=0.2, learning_rate=7e-4, singles_share=0.5, single_object_phase=0.25),
        ),
        **{"trials": 10, "architectures": ("mini",), "learning_rates": (1e-4, 5e-3), "singles_shares": (0.5,)},
    ),
}


def check(config: Config) -> None:
    from menagerie.studies.trials.launch import check_workers
    from menagerie.studies.trials.storage import check_storage

    check_workers(config.grid.cluster, config.grid.workers)
    check_storage(config.storage)
    if len(config.grid.places) != 1 or config.grid.seeds != 1:
        raise UserError("tuning needs one cell: one --pairs and --hard-negatives or one --split, and --seeds 1")
    if config.grid.tuned or config.grid.pretrained:
        raise UserError("tuning is for training from scratch: leave out --tuned and --pretrained")
    check_searched(config)
    if not config.architectures:
        raise UserError("--architectures needs one or more towers")
    for architecture in config.architectures:
        check_grid(replace(config.grid, architecture=architecture))
        for model in config.grid.models:
            in_child(check_budget, config, model, architecture)


def check_searched(config: Config) -> None:
    """Raise for ranges that hold nothing, or what no recipe may have."""
    validate(config)
    if not config.learning_rates or min(config.learning_rates) <= 0:
        raise UserError(f"--learning-rates are one or two values above 0, got {config.learning_rates}")


def check_budget(config: Config, model: str, architecture: str) -> None:
    """Raise if a model has more parameters than all may have."""
    from menagerie.studies.tuning.space import parameters

    if (count := parameters(config.grid, model, architecture)) > config.parameters:
        raise UserError(
            f"{model} on {architecture} has {count} parameters, more than --parameters {config.parameters}; "
            "raise it for all models, or choose other --architectures"
        )


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    check_files(config.grid, PRESETS[preset].grid)
    config = replace(config, grid=config.grid.settled())
    check(config)
    if config.grid.dry_run:
        from menagerie.studies.frame.dry_run import dry_run

        dry_run(config.grid)
        runs = config.trials + config.finalists * (config.final_seeds - 1)
        print(f"and that for each of {runs} runs of every model: {config.trials} trials, and seeds of the best ones")
        return
    from menagerie.studies.runs.folder import run_folder
    from menagerie.studies.tuning.run import run

    config = replace(config, grid=chosen_alone(config.grid))
    # What doesn't decide results may differ from run to run, and a URL may hold a password. Each model's search is its
    # own, so that a folder goes on with further models: what was recorded of each is compared where its trials are.
    places = {"out": None, "store": Path(), "workers": 0, "loaders": 0, "cluster": Cluster()}
    places |= {"log": (), "validate_every": 0, "dry_run": False}
    places |= {"models": (), "scorers": only(config.grid.scorers, ())}
    same = replace(config, grid=replace(config.grid, **places), storage="", study="")
    out = config.grid.out or Path(f"runs/tune-{preset}")
    with run_folder(out, same, frozenset({"storage", "study"}), shared=True) as folder:
        run(config, config.study or f"tune-{preset}", folder)


if __name__ == "__main__":
    run_command(main)
