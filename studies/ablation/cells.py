"""The training runs of an ablation study: every row on every split where it matters; and what they would take."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.parsers.graph_source import GENERATOR
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.rows import (
    SplitRow,
    ablated,
    changed,
    changes,
    chosen_rows,
    matters,
    model_of,
    row_grid,
)
from menagerie.studies.frame.cells import PAPER_RECIPES, parser_hash, without_recipe
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import cells, render, splits
from menagerie.studies.runs.cell import Cell, Execution, Job
from menagerie.studies.runs.data import CellData

Grids = Mapping[str, Grid]
"""The grid of each split, with the model as it is."""


class Rows(NamedTuple):
    """The rows of a study."""

    lines: Mapping[str, str]
    """The options that each row changes, by the row's name."""
    left_out: Mapping[str, str]
    """The reason why each other row is left out, by name: its parser can't work here."""


@lru_cache(maxsize=4)  # opening a parser may take seconds
def rows_of(model: str, requested: tuple[str, ...]) -> Rows:
    """The rows that are requested of a model's study; raises for one that there is not."""
    rows, left_out, spec = {}, {}, ablated(model)
    for row, line in chosen_rows(spec, requested).items():
        try:
            parser_hash(changes(spec, line).get("graphs", GENERATOR))
        except UserError as error:
            left_out[row] = str(error)
        else:
            rows[row] = line
    return Rows(rows, left_out)


def models_of(spec: ScorerSpec, rows: Rows) -> tuple[str, ...]:
    """The models of all rows, each once."""
    return tuple(dict.fromkeys(model_of(spec, line) for line in rows.lines.values()))


def tuned_alike(grid: Grid, models: Sequence[str]) -> tuple[Grid, str]:
    """The grid, with its tuned recipes only where all models of the rows have one: a row would else differ from the
    others by the search too. And why it has none, if so."""
    if grid.tuned in ("", PAPER_RECIPES) or not (lacking := without_recipe(grid.tuned, models)):
        return grid, ""
    return replace(grid, tuned=""), f"the grid's own for all rows: nothing was tuned for {', '.join(lacking)}"


def row_cells(grid: Grid, spec: ScorerSpec, line: str, store_identity: str) -> list[Cell]:
    """The cells of a row, one a seed."""
    return [changed(spec, cell, line) for cell in cells(row_grid(grid, spec, line), store_identity)]


def placed(grids: Grids, spec: ScorerSpec, rows: Rows) -> Iterator[tuple[SplitRow, Grid, str]]:
    """Every row on every split where it matters, with the split's grid and its line."""
    for split, grid in grids.items():
        for row, line in rows.lines.items():
            if matters(spec, line, grid.kind == "spatial", grid.kind):
                yield SplitRow(split, row), grid, line


def check_rows(rows: Mapping[str, Cell]) -> None:
    """Raise for a row that can't be built: cells by their lines."""
    from menagerie.models.contract import attempt, build

    for line, cell in rows.items():
        scratch = replace(cell.towers, pretrained="")
        attempt(f"{cell.model} in row {line!r}", "can't be built", partial(build, cell.model, scratch, cell.options))


def jobs_of(grids: Grids, spec: ScorerSpec, rows: Rows, out: Path, execution: Execution) -> dict[SplitRow, list[Job]]:
    """Render what is missing; the runs of every row on every split where it matters, a run a seed."""
    jobs: dict[SplitRow, list[Job]] = {}
    rendered: dict[tuple[SplitRecipe | str, ...], tuple[str, dict[CellData, Path]]] = {}
    for place, grid, line in placed(grids, spec, rows):
        grid_of_row = row_grid(grid, spec, line)
        recipes = tuple(splits(grid_of_row)) or (place.split,)
        if recipes not in rendered:
            rendered[recipes] = render(grid_of_row, grid_of_row.cores)
        identity, files = rendered[recipes]
        varied = row_cells(grid, spec, line, identity)
        jobs[place] = [Job(c, files[c.data], out, f"{place.split}, {place.row}", execution) for c in varied]
    return jobs


def in_turn(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """The jobs that come first, and those that score their weights with other graphs, once they are finished."""
    ids = {job.cell.id for job in jobs}
    waits = [job.cell.trained_as != job.cell and job.cell.trained_as.id in ids for job in jobs]
    first, then = ([job for job, wait in zip(jobs, waits, strict=True) if wait == later] for later in (False, True))
    return first, then


def plan(grids: Grids, spec: ScorerSpec, rows: Rows) -> None:
    """Print how many runs there are and how long they take: of each split and model one row's step is timed, and one
    with false captions where there is any."""
    import torch

    from menagerie.studies.frame.dry_run import sample_of, steps_of
    from menagerie.studies.frame.step_cost import REST_SECONDS, STUDY_SECONDS, shown, step_seconds

    seconds = 0.0
    for split, grid in grids.items():
        torch.set_num_threads(grid.threads)
        lines = [line for _, _, line in placed({split: grid}, spec, rows)]
        distinct = {cell.id: cell for line in lines for cell in row_cells(grid, spec, line, "")}
        data = sample_of(next(iter(grid.files.values())) if grid.split else None, next(iter(distinct.values())))
        trained = [cell for cell in distinct.values() if cell.trained_as == cell or cell.trained_as.id not in distinct]
        seconds += rendering(grid) + REST_SECONDS * len(distinct)
        print(f"{split}: {len(distinct)} runs, {len(distinct) - len(trained)} of which only score another's weights")
        alike: dict[tuple[str, bool], list[Cell]] = defaultdict(list)
        for cell in trained:
            alike[cell.model, bool(cell.recipe.text_negatives)].append(cell)
        for (model, with_negatives), group in alike.items():
            steps, each = sum(steps_of([cell]) for cell in group), step_seconds(group[0], data)
            seconds += steps * each
            what = f"{model} with false captions" if with_negatives else model
            print(f"  {what}: {len(group)} runs, {steps} steps, {1000 * each:.0f} ms each")
    for row, reason in rows.left_out.items():
        print(f"row {row}: left out: {reason}")
    at_once = next(iter(grids.values())).at_once
    total = STUDY_SECONDS + seconds / at_once
    print(f"about {shown(total)} in all, {at_once} runs at once, as busy as this machine is now")


def rendering(grid: Grid) -> float:
    """Seconds of all workers together for what is missing in the store; none for a file."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.estimate import estimate
    from menagerie.generators.storage.image_store import ImageStore

    if grid.split:
        return 0.0
    store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
    scenes = {scene for recipe in splits(grid) for scene in recipe.scenes_to_render()}
    return estimate(store, sorted(scenes), grid.cores).seconds * grid.at_once
