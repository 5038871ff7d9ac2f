"""Does CLIP bind with enough training? Accuracy against compute, at the hardest cells of both grids.

    python studies/compute.py --preset smoke              # tiny world, a minute on 2 cores
    python studies/compute.py                             # laptop: 8 animals, 32 px, to 6000 steps
    python studies/compute.py --budgets 500 1000 2000 4000 6000 16000     # goes on from there
    python studies/compute.py --preset long               # CLIP, one seed: pug, 64 px, 16 000 steps
    python studies/compute.py --preset wide --device cuda # towers, batches, pooling; 32 000 steps

First the learning rate (towers, batch): all are trained with one seed, and after each budget of steps
the better half on validation goes on. The last one is trained with all seeds, each budget in turn, until
validation stops rising (one at chance may not have begun to, and goes on).

The rate is constant and then decays (warmup-stable-decay): a cosine would need a run of its own for every
budget, while here a longer run goes on from where a shorter one began to decay, so that budgets up to n
steps, each twice the one before, cost 1.2 n instead of 2 n. With a fifth of the steps for a decay of
1 - sqrt such runs are as good as cosines of their length (Hägele et al. 2024; Hu et al. 2024), and each point
is a finished model, which a run that is looked at half-way is not.

Ends with `report.html`, `results.csv`, `compute.csv` and per-record predictions in `--out`. Run again, it
skips what is finished.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.models.recipe import Recipe
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.budgets.courses import Config, recipe_of, setups_of
from menagerie.studies.budgets.run import run
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.checks import check_unused_options
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import splits
from menagerie.studies.runs.command_line import EXECUTION, only, parse, scorer_options

GRIDS = {"binding": binding_grid.PRESETS, "spatial": spatial_grid.PRESETS}
# What doesn't decide the result of any run: a folder goes on with more of it.
FURTHER = EXECUTION | {"budgets", "patience", "seeds"}


PRESETS: dict[str, Config] = {
    "smoke": Config(
        **{"cell": "smoke", "models": ("clip", "oc-clip"), "scorers": scorer_options("smoke"), "seeds": 2},
        **{"budgets": (12, 24, 48), "architectures": ("nano",), "batches": (32,), "learning_rates": (1e-3, 4e-3)},
        **{"warmup": 4, "singles_steps": 6, "bar": 0.75, "patience": 1},
    ),
    "laptop": Config(),
    # As its best trial of `tune` on the cell of textures: towers, rate, shares. All budgets, whatever validation says:
    # that of one seed is too uncertain to stop by.
    "long": Config(
        **{"cell": "laptop", "models": ("clip",), "seeds": 1, "patience": 4, "learning_rates": (7.5e-4,)},
        **{"budgets": (2000, 4000, 8000, 16_000), "warmup": 390, "singles_share": 0.37, "singles_steps": 500},
    ),
    # For a GPU or a cluster: 20 towers, batches and rates a model, of which one is left after five budgets.
    "wide": Config(
        **{"models": ("clip", "clip-gap", "negclip", "oc-clip"), "architectures": ("mini", "small"), "seeds": 5},
        **{"batches": (64, 256), "learning_rates": (7e-5, 2e-4, 6e-4, 1.8e-3, 5.4e-3)},
        budgets=(500, 1000, 2000, 4000, 8000, 16_000, 32_000),
    ),
}


def splits_of(config: Config) -> tuple[str, ...]:
    """The names of the splits to train on."""
    return ("own",) if config.base else config.splits


@lru_cache(maxsize=8)
def grid_of(config: Config, split: str) -> Grid:
    """The grid that a split is the one cell of: its hardest, or a recipe of the user's."""
    kind = ("spatial" if config.base.relational else "binding") if config.base else choose("split", split, GRIDS)
    preset = GRIDS[kind][choose("preset of the grids", config.cell, GRIDS[kind])]
    if config.base:
        preset = preset.with_recipe(config.base)
    else:
        preset = replace(preset, pairs=(min(preset.pairs),), hard_negatives=(0.0,))
    shared = {name: getattr(config, name) for name in (EXECUTION - {"out"}) | {"seeds", "device", "threads"}}
    return replace(
        preset,
        **shared,
        models=config.models,
        architecture=config.architectures[0],
        tuned="",
        recipe=Recipe(batch=config.batches[0]),
        scorers=only(config.scorers, config.models),
    )


def check(config: Config) -> None:
    if not config.splits:
        raise UserError("--splits needs binding, spatial or both")
    for name in ("budgets", "architectures", "batches", "learning_rates"):
        values = getattr(config, name)
        if not values or len(set(values)) < len(values) or 0 in values:
            raise UserError(f"--{name.replace('_', '-')} needs one or more different values above 0, got {values}")
    first = config.budgets[0]
    if list(config.budgets) != sorted(config.budgets):
        raise UserError(f"--budgets are steps in rising order, got {config.budgets}")
    if not 0 < config.decay < 1:
        raise UserError(f"--decay is a share of the steps between 0 and 1, got {config.decay:g}")
    if max(config.singles_steps, config.warmup) >= first - round(config.decay * first):
        raise UserError(
            f"--singles-steps {config.singles_steps} and --warmup {config.warmup} must end before the rate of the "
            f"smallest of --budgets, {first}, decays"
        )
    for split in splits_of(config):
        grid = grid_of(config, split)
        check_unused_options(replace(grid, scorers=config.scorers))
        for name in ("validation", "reserve"):
            if not getattr(splits(grid)[0], name):
                raise UserError(f"{name} of the recipe must leave pairs by which runs are judged, got 0")
        for architecture in config.architectures:
            check_grid(replace(grid, architecture=architecture, out=config.out))
    for setup in (setup for model in config.models for setup in setups_of(config, model)):
        recipe_of(config, setup, first)  # refuses rates and shares that can't be


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    check(config)
    config = replace(config, scorers=only(config.scorers, config.models))
    grids = {split: grid_of(config, split) for split in splits_of(config)}
    if config.dry_run:
        from menagerie.studies.budgets.run import plan

        plan(config, grids)
        return
    from menagerie.studies.runs.folder import run_folder

    with run_folder(config.out or Path(f"runs/compute-{preset}"), config, FURTHER) as out:
        run(config, grids, out)


if __name__ == "__main__":
    run_command(main)
