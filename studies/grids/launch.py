"""A grid from its command line: what it is refused for, before anything is made; rendering, training and report."""

from collections.abc import Mapping
from pathlib import Path

from menagerie.envs.core.progress import Sparing
from menagerie.envs.worlds import load_world
from menagerie.models.registry import spec_of, specs
from menagerie.studies.frame.cells import recipe_line, untuned
from menagerie.studies.frame.checks import check
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import cells, chosen_alone, data_of, splits
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.command_line import COMPARE, EXECUTION, parse, runs_to_compare
from menagerie.studies.runs.data import FRACTIONS, CellData

# What decides the result of no cell: a folder goes on with more of it.
FURTHER = EXECUTION | {"models", "seeds", *FRACTIONS}


def main(study: str, presets: Mapping[str, Grid], description: str) -> None:
    """Parse, check, run; or compare two runs."""
    if runs := runs_to_compare():
        from menagerie.studies.analysis.paired_bootstrap import compare

        print(compare(*runs))
        return
    preset, grid = parse(presets, "laptop", description, (COMPARE,))
    grid.check_given(presets[preset])
    grid = grid.settled()
    check(grid)
    from menagerie.studies.runs.folder import run_folder

    grid = chosen_alone(grid)
    if grid.dry_run:
        from menagerie.studies.frame.dry_run import dry_run

        dry_run(grid)
        return
    with run_folder(grid.out or Path(f"runs/{study}-{preset}"), grid, further(grid)) as out:
        run(grid, out)


def further(grid: Grid) -> frozenset[str]:
    """The settings in which a grid may differ from its folder: `FURTHER`, and the options of models that the grid
    doesn't have."""
    others = {spec.flag for spec in specs().values()} - {spec_of(model).flag for model in grid.models}
    return FURTHER | {f"scorers.{flag}" for flag in others}


def render(grid: Grid, workers: int) -> tuple[str, dict[CellData, Path]]:
    """Fill the image store and write the split files; returns its identity, and the file of what is trained on.

    Where files were given nothing is rendered.
    """
    if grid.split:
        return "", dict(grid.files)
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.studies.runs.split_file import make_splits

    store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
    files = make_splits(store, splits(grid), workers)
    return store.identity, {data: files[data.recipe] for data, _ in data_of(grid, store.identity)}


def run(grid: Grid, out: Path) -> None:
    """Render, train what isn't finished, and write results and report."""
    from menagerie.studies.grids.report import write_report
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.results import collect, write_results
    from menagerie.studies.runs.shared import clear_shared

    identity, files = render(grid, grid.cores)
    execution = Execution.of(grid)
    jobs = [Job(cell, files[cell.data], out, execution=execution) for cell in cells(grid, identity)]
    folders = [job.folder for job in jobs]
    data_files = {job.cell.id: job.data_file for job in jobs}

    def publish() -> Path:
        results = collect(folders)
        write_results(out, results)
        return write_report(out, grid, recipes, results, data_files)

    def on_finished(_: Job) -> None:
        if not sparing(publish):
            write_results(out, collect(folders))

    recipes = {f"recipe of {model}": recipe_line(grid, model) for model in grid.models}
    for name, text in recipes.items():
        print(f"{name}: {text}")
    if lacking := untuned(grid):
        print(f"warning: {', '.join(lacking)}: not tuned, unlike the others; compare with care, or add --tuned ''")
    done = {result["id"] for result in collect(folders)}
    print(f"{len(jobs)} cells, {len(done)} of them finished before", flush=True)
    sparing = Sparing()
    waiting = [job for job in jobs if job.cell.id not in done]
    if waiting:
        sparing(publish)
    run_cells(waiting, grid.cluster, grid.at_once, out, on_finished)
    clear_shared(out)
    print(f"report: {publish()}")
