"""A grid's command line: what it is refused for, before anything is made, and its run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envs.common.errors import UserError, choose
from envs.worlds import load_world
from generators.cluster.options import check_cluster
from models.registry import check_scorer
from studies.grids.grid import EXECUTION, Grid, options, run, splits, towers, tuned
from studies.grids.tuned_recipes import SEARCHED
from studies.runs.command_line import parse, runs_to_compare


def main(study: str, presets: Mapping[str, Grid], description: str) -> None:
    """Parse, check, run; or compare two runs."""
    if runs := runs_to_compare():
        from studies.analysis.compare import compare

        print(compare(*runs))
        return
    preset, grid = parse(presets, "laptop", description)
    check_overrides(grid, presets[preset])
    check(grid)
    from studies.runs.folder import run_folder

    with run_folder(grid.out or Path(f"runs/{study}-{preset}"), grid, EXECUTION) as out:
        run(grid, out)


def check(grid: Grid) -> None:
    """Raise on what can't work."""
    load_world(grid.world)
    for model in grid.models:
        check_scorer(model)
    for name in ("models", "pairs", "hard_negatives"):
        values = getattr(grid, name)
        if not values or len(set(values)) != len(values):
            raise UserError(f"--{name.replace('_', '-')} needs one or more different values, got {values}")
    if grid.seeds < 1 or grid.threads < 1 or grid.workers < 0:
        raise UserError("--seeds and --threads must be at least 1, --workers at least 0")
    if not 16 <= grid.resolution <= 1024:
        raise UserError(f"--resolution must be from 16 to 1024 pixels, got {grid.resolution}")
    for recipe in splits(grid):
        recipe.counts()  # refuses fractions that can't be had
    check_cluster(grid.cluster, grid.threads, int(grid.device.startswith("cuda")))
    check_machine(grid)


def check_overrides(grid: Grid, preset: Grid) -> None:
    """Raise if an option was given that the tuned recipes would replace."""
    if not grid.tuned:
        return
    given = [name for name in SEARCHED if getattr(grid.recipe, name) != getattr(preset.recipe, name)]
    given += [name for name in ("architecture", "pretrained") if getattr(grid, name) != getattr(preset, name)]
    # Models that weren't tuned take these options.
    if given and len(tuned(grid)) == len(grid.models):
        option = f"--{given[0].replace('_', '-')}"
        raise UserError(f"{option} is replaced by the recipes of --tuned {grid.tuned}; add --tuned '' to set it")


def check_machine(grid: Grid) -> None:
    """Raise on towers or a device that this machine doesn't have. Imports torch."""
    choose("device", grid.device.partition(":")[0], ("cpu", "cuda"))
    import torch

    from models.towers.build import check_towers

    here = grid.cluster.engine != "slurm"  # where jobs are submitted there need be no GPU
    if here and grid.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {grid.device}: torch sees no CUDA device here; use --device cpu")
    for model in grid.models:
        check_towers(towers(grid, model))
        check_builds(grid, model)


def check_builds(grid: Grid, model: str) -> None:
    """Raise if `model` can't be built as configured: now, and not after an hour of other cells."""
    from models.checkpoint import build_scorer

    try:
        build_scorer(model, replace(towers(grid, model), pretrained=""), ("a",), options(grid, model))
    except UserError:
        raise
    except Exception as error:  # whatever a library or a user's own class raises
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"{model} on {towers(grid, model).architecture} can't be built as configured: {told}"
        ) from error
