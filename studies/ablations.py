"""What does each part of a model bring? OC-CLIP's tables 6 and 7, figures 3 and 4, on our world.

    python studies/ablations.py --preset smoke
    python studies/ablations.py                      # laptop: half the steps of the grids, 3 seeds
    python studies/ablations.py --rows coefficients  # alpha and beta; dimensions: figure 4
    python studies/ablations.py --rows "dim=32 layers=1" "model=clip" "graphs=rules"
    python studies/ablations.py --preset oracle      # is it the graph? Other models, errors in it
    python studies/ablations.py --preset negatives   # false captions for all; masks, phases
    python studies/ablations.py --preset partial     # captions that leave things and textures out

Each row differs from the model by one line of configuration, which comes from the model's paper
(studies/ablation/papers.py) or from the study (studies/ablation/rows.py), and is trained on the hardest
cell of the spatial grid and, where it can matter, of the binding grid. Rows whose parser isn't installed are
left out, with the reason.
Ends with `report.html`, `ablations.csv` and `ablations.tex` in `--out`. Run again, it skips what is finished.
"""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.options import DATA, FIRST, MODEL, TRAINING, WHAT
from menagerie.envs.core.processes import in_child
from menagerie.envs.core.progress import Sparing
from menagerie.envs.core.validation import SEEDS, STEPS, Range
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.ablation.cells import (
    check_rows,
    in_turn,
    jobs_of,
    models_of,
    placed,
    row_cells,
    rows_of,
    tuned_alike,
)
from menagerie.studies.ablation.papers import ABLATIONS
from menagerie.studies.ablation.rows import ablated
from menagerie.studies.frame.cells import recipe_line
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import cell_line
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.command_line import EXECUTION, RunOptions, parse

GRIDS = {"spatial": spatial_grid.PRESETS, "binding": binding_grid.PRESETS}
# What doesn't decide the result of any run: a folder goes on with more of it.
FURTHER = EXECUTION | {"rows", "seeds"}


@dataclass(frozen=True)
class Config(RunOptions):
    """One ablation study."""

    model: Annotated[str, MODEL, FIRST] = "oc-clip"
    """The model whose parts are varied."""
    rows: Annotated[tuple[str, ...], WHAT, FIRST] = ()
    """Rows by name, lines such as "dim=32 relation_dim=16", or groups: coefficients, dimensions, partial, oracle,
    negatives. None takes all that the model names, but for such groups."""
    splits: Annotated[tuple[str, ...], DATA, FIRST] = tuple(GRIDS)
    """Splits to train on: spatial, binding; a recipe or a file of yours takes their place."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": what one matches is only in tests (docs/splits.md)."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """A split file made before, a packed one too."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    cell: Annotated[str, DATA, FIRST] = "laptop"
    """Preset of the two grids whose hardest cell is trained."""
    seen_order: Annotated[bool, DATA] = False
    """Test orders of animals that train shows, too, on splits that have them: fitting beside generalising."""
    steps: Annotated[int, TRAINING, FIRST, Range(0, STEPS.high)] = 0
    """Optimiser steps; 0 takes the preset's."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 3
    """Number of seeds, 0 to seeds - 1."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be trained, and how long it takes."""

    def with_recipe(self, recipe: SplitRecipe) -> "Config":
        """The study on the split of a recipe of the user's."""
        return replace(self, base=recipe, hold_out=recipe.hold_out)


PRESETS: dict[str, Config] = {
    "smoke": Config(rows=("no local loss", "regular attention"), cell="smoke", seeds=1, steps=40),
    # After half of the grids' steps rows differ more than at their end, where most are right in 99 %.
    "laptop": Config(steps=1000),
    # Eight animals at 32 px.
    "oracle": Config(rows=("oracle",), cell="breadth", seen_order=True),
    "negatives": Config(rows=("negatives",), cell="breadth", seen_order=True),
    # Captions that leave things and textures out, in all the steps that it takes to fit them.
    "partial": Config(rows=("partial",), cell="breadth", steps=3000),
    "paper": Config(rows=(*ABLATIONS["oc-clip"].rows, "coefficients"), cell="paper"),
}


def splits_of(config: Config) -> tuple[str, ...]:
    """The names of the splits to train on."""
    return ("own",) if config.base or config.split else config.splits


def plain_grid(config: Config, split: str) -> Grid:
    """The hardest cell of a grid, or a recipe or a file of the user's."""
    relational = config.base is not None and config.base.relational
    presets = GRIDS.get(split) or GRIDS["spatial" if relational else "binding"]
    grid = presets[choose("preset of the grids", config.cell, presets)]
    if config.base:
        return replace(grid.with_recipe(config.base), hold_out=config.hold_out)
    if config.split:
        return replace(grid, split=config.split).settled()
    return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,), hold_out=config.hold_out)


@lru_cache(maxsize=8)  # opens split files
def alike(config: Config, split: str) -> tuple[Grid, str]:
    """The hardest cell, tuned only if each row's model is; and why it isn't."""
    spec = ablated(config.model)
    return tuned_alike(plain_grid(config, split), models_of(spec, rows_of(config.model, config.rows)))


def grid_of(config: Config, split: str) -> Grid:
    """The grid that a split is the one cell of, with the model alone."""
    preset, _ = alike(config, split)
    if config.seen_order and not preset.split and "seen_order" in {item.name for item in fields(preset)}:
        preset = replace(preset, seen_order=True)
    return replace(
        preset,
        models=(config.model,),
        recipe=replace(preset.recipe, steps=config.steps or preset.recipe.steps),
        **{name: getattr(config, name) for name in (EXECUTION - {"out", "dry_run"}) | {"seeds", "device", "threads"}},
    )


def grids_of(config: Config) -> dict[str, Grid]:
    """The grid of each split to train on."""
    return {split: grid_of(config, choose("split", split, (*GRIDS, "own"))) for split in splits_of(config)}


def check(config: Config) -> None:
    if not config.splits:
        raise UserError("--splits needs spatial, binding or both, got none")
    if len(config.split) > 1 or (config.split and (config.base or config.hold_out)):
        raise UserError("--split takes one file here, and neither --recipe nor --hold-out beside it")
    spec, rows = ablated(config.model), rows_of(config.model, config.rows)
    grids = grids_of(config)
    for split, grid in grids.items():
        check_grid(replace(grid, models=models_of(spec, rows), out=config.out))
        lines = [line for _, _, line in placed({split: grid}, spec, rows)]
        in_child(check_rows, {line: row_cells(grid, spec, line, "")[0] for line in lines})


def run(config: Config, out: Path) -> None:
    """Train what isn't finished, and write tables and report."""
    from menagerie.studies.ablation.report import publish
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.results import finished
    from menagerie.studies.runs.shared import clear_shared

    grids, spec, rows = grids_of(config), ablated(config.model), rows_of(config.model, config.rows)
    left_out = {f"row {row}": f"left out: {reason}" for row, reason in rows.left_out.items()}
    notes = {
        f"{split} cell": f"{cell_line(grid)}; {recipe_line(grid, grid.models[0])}" for split, grid in grids.items()
    }
    notes |= {f"{split} recipes": why for split in grids if (why := alike(config, split)[1])} | left_out
    jobs = jobs_of(grids, spec, rows, out, Execution.of(config))
    waiting = {job.folder: job for batch in jobs.values() for job in batch if finished(job.folder) is None}
    print(f"{sum(map(len, jobs.values()))} runs, {len(waiting)} of them to train", flush=True)
    for row, reason in left_out.items():
        print(f"{row}: {reason}", flush=True)
    sparing = Sparing()

    def show(job: Job | None = None) -> None:
        sparing(lambda: publish(out, spec, jobs, notes))

    if waiting:
        show()
    at_once = next(iter(grids.values())).at_once
    for batch in in_turn(list(waiting.values())):
        run_cells(batch, config.cluster, at_once, out, show)
    clear_shared(out)
    print(f"report: {publish(out, spec, jobs, notes)}")


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    check(config)
    if config.dry_run:
        from menagerie.studies.ablation.cells import plan

        plan(grids_of(config), ablated(config.model), rows_of(config.model, config.rows))
        return
    from menagerie.studies.runs.folder import run_folder

    with run_folder(config.out or Path(f"runs/ablations-{preset}"), config, FURTHER) as out:
        run(config, out)


if __name__ == "__main__":
    run_command(main)
