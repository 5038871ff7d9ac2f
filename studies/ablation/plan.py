"""What an ablation study would take on this machine: `--dry-run`, from a few steps that are made and not kept."""

from collections import defaultdict

import torch

from menagerie.envs.worlds import load_world
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.cells import Grids, Rows, placed, row_cells
from menagerie.studies.grids.grid import Grid, cores, splits, workers
from menagerie.studies.grids.plan import REST_SECONDS, STUDY_SECONDS, shown, step_seconds, steps_of, training_sample
from menagerie.studies.runs.cell import Cell


def plan(grids: Grids, spec: ScorerSpec, rows: Rows) -> None:
    """Print how many runs there are and how long they take: of each split and model one row's step is timed, and one
    with false captions where there is any."""
    seconds = 0.0
    for split, grid in grids.items():
        torch.set_num_threads(grid.threads)
        data, lines = training_sample(grid), [line for _, _, line in placed({split: grid}, spec, rows)]
        distinct = {cell.id: cell for line in lines for cell in row_cells(grid, spec, line, "")}
        trained = [cell for cell in distinct.values() if cell.trained_as == cell or cell.trained_as.id not in distinct]
        seconds += rendering(grid) + REST_SECONDS * len(distinct)
        print(f"{split}: {len(distinct)} runs, {len(distinct) - len(trained)} of which only score another's weights")
        alike: dict[tuple[str, bool], list[Cell]] = defaultdict(list)
        for cell in trained:
            alike[cell.model, bool(cell.recipe.text_negatives)].append(cell)
        for (model, with_negatives), its in alike.items():
            steps, each = sum(steps_of([cell]) for cell in its), step_seconds(its[0], data)
            seconds += steps * each
            what = f"{model} with false captions" if with_negatives else model
            print(f"  {what}: {len(its)} runs, {steps} steps, {1000 * each:.0f} ms each")
    for row, reason in rows.left_out.items():
        print(f"row {row}: left out: {reason}")
    at_once = workers(next(iter(grids.values())))
    total = STUDY_SECONDS + seconds / at_once
    print(f"about {shown(total)} in all, {at_once} runs at once, as busy as this machine is now")


def rendering(grid: Grid) -> float:
    """Seconds of all workers together for what is missing in the store; none for a file."""
    if grid.split:
        return 0.0
    store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
    scenes = {scene for recipe in splits(grid) for scene in recipe.scenes_to_render()}
    return estimate(store, sorted(scenes), cores(grid)).seconds * workers(grid)
