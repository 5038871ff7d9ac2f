"""A grid from its command line: what it is refused for, before anything is made; rendering, training and report."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import check_place
from menagerie.envs.core.processes import in_child
from menagerie.envs.core.progress import Sparing
from menagerie.envs.core.validation import validate
from menagerie.envs.worlds import load_world
from menagerie.models.recipe import Recipe, negatives_of
from menagerie.models.registry import check_scorer, spec_of, specs
from menagerie.studies.cluster.options import check_cluster
from menagerie.studies.grids.cells import (
    PAPER_FIELDS,
    SEARCHED,
    cells,
    data_of,
    paper_recipe,
    parser_hash,
    recipe_line,
    towers,
    tuned,
    untuned,
)
from menagerie.studies.grids.grid import PAPER_RECIPES, Grid, chosen_alone, cores, splits, workers
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.command_line import COMPARE, EXECUTION, parse, runs_to_compare, sized
from menagerie.studies.runs.data import FRACTIONS, CellData
from menagerie.studies.runs.loggers import check_loggers
from menagerie.studies.runs.machine import check_device, check_device_here, start_server

# What decides the result of no cell: a folder goes on with more of it.
FURTHER = EXECUTION | {"models", "seeds", *FRACTIONS}


def main(study: str, presets: Mapping[str, Grid], description: str) -> None:
    """Parse, check, run; or compare two runs."""
    if runs := runs_to_compare():
        from menagerie.studies.analysis.paired_bootstrap import compare

        print(compare(*runs))
        return
    preset, grid = parse(presets, "laptop", description, (COMPARE,))
    check_overrides(grid, presets[preset])
    check_files(grid, presets[preset])
    grid = grid.settled()
    check(grid)
    from menagerie.studies.runs.folder import run_folder

    grid = chosen_alone(grid)
    if grid.dry_run:
        from menagerie.studies.grids.plan import plan

        plan(grid)
        return
    with run_folder(grid.out or Path(f"runs/{study}-{preset}"), grid, further(grid)) as out:
        run(grid, out)


def further(grid: Grid) -> frozenset[str]:
    """The settings in which a grid may differ from its folder: `FURTHER`, and the options of models that the grid
    doesn't have."""
    others = {spec.flag for spec in specs().values()} - {spec_of(model).flag for model in grid.models}
    return FURTHER | {f"scorers.{flag}" for flag in others}


def check(grid: Grid) -> None:
    validate(grid)
    if not grid.split:
        load_world(grid.world)
    for model in grid.models:
        check_scorer(model)
    for name, values in {"models": grid.models, **grid.axes}.items():
        if not values or len(set(values)) != len(values):
            raise UserError(f"--{name.replace('_', '-')} needs one or more different values, got {values}")
    check_loggers(grid.log)
    check_unused_options(grid)
    check_image_negatives(grid)
    check_graphs(grid)
    for recipe in splits(grid):
        recipe.rules(load_world(recipe.world))  # refuses what isn't in the world
        recipe.counts()  # refuses fractions that can't be had
    check_device(grid.device)
    check_place("--store", grid.store)
    check_cluster(grid.cluster, grid.out or Path("runs"), grid.threads, int(grid.device.startswith("cuda")))
    start_server(grid.threads)
    in_child(check_machine, grid)


def check_unused_options(grid: Grid) -> None:
    """Raise for an option of a model that isn't chosen: it would change nothing."""
    for model in grid.scorers.models:
        spec = spec_of(model)
        if model not in grid.models and getattr(grid.scorers, spec.flag) != sized(spec, grid.scorers.size):
            raise UserError(f"an option --{spec.name}.* is given, but {model} is not among --models")


def check_image_negatives(grid: Grid) -> None:
    """Raise where images are to be shown with their partners, and at some place no training pair has any."""
    if not grid.recipe.image_negatives:
        return
    swapped = [data.pairs[1] for data in grid.files] or [recipe.counts().swapped for recipe in splits(grid)]
    if not all(swapped):
        raise UserError(
            "--image-negatives shows training images with their partners, the same things swapped; at some place no "
            "training pair has any: give --hard-negatives above 0 (or a --split that has them), or leave it out"
        )


def check_graphs(grid: Grid) -> None:
    """Raise for other graphs that nobody reads, and for a parser that can't work here."""
    if grid.graph_source.plain:
        return
    if not any("graphs" in spec_of(model).reads for model in grid.models):
        raise UserError(
            f"none of {', '.join(grid.models)} reads scene graphs: --graphs, --dropped-nodes and --moved-attributes "
            "change nothing; add a model that does, such as oc-clip, or leave them out"
        )
    parser_hash(grid.graph_source.graphs)


def check_overrides(grid: Grid, preset: Grid) -> None:
    """Raise if an option was given that tuned recipes or those of papers would replace."""
    given = [name for name in Recipe.__dataclass_fields__ if getattr(grid.recipe, name) != getattr(preset.recipe, name)]
    given += [name for name in ("architecture", "pretrained") if getattr(grid, name) != getattr(preset, name)]
    # Models whose recipe is the grid's own take these options.
    lost = [f"--{name.replace('_', '-')}" for name in given if all(name in replaced(grid, m) for m in grid.models)]
    for model, best in tuned(grid).items():
        spec = spec_of(model)
        config, plain = getattr(grid.scorers, spec.flag), sized(spec, grid.scorers.size)
        before = getattr(preset.scorers, spec.flag, plain)
        changed = [name for name in best.options if getattr(config, name) != getattr(before, name)]
        lost += [f"--{spec.name}.{name.replace('_', '-')}" for name in changed]
    if lost and grid.pretrained and grid.tuned in ("", PAPER_RECIPES):
        raise UserError(f"{lost[0]} is replaced by what each model's paper has with --pretrained weights; leave it out")
    if lost:
        raise UserError(f"{lost[0]} is replaced by the recipes of --tuned {grid.tuned}; add --tuned '' to set it")


def replaced(grid: Grid, model: str) -> Sequence[str]:
    """The options of which a model doesn't take the grid's values."""
    if model in tuned(grid):
        return (*SEARCHED, "architecture", "pretrained")
    return PAPER_FIELDS if paper_recipe(grid, model) else ()


def check_files(grid: Grid, preset: Grid) -> None:
    """Raise for options beside `--split` that would change nothing."""
    if not grid.split:
        return
    names = {item.name for item in fields(grid)} & {item.name for item in fields(grid.recipe_given)} | {"resolution"}
    given = sorted(name for name in names if getattr(grid, name) != getattr(preset, name))
    if given or grid.base != preset.base:
        option = "recipe" if grid.base != preset.base else given[0].replace("_", "-")
        raise UserError(f"--{option} changes nothing beside --split, whose files decide it; leave one of them out")


def check_machine(grid: Grid) -> None:
    """Raise on towers, scorers or a device that can't work here, before an hour of other cells. Imports torch."""
    from menagerie.models.towers.build import check_towers

    if grid.cluster.engine != "slurm":  # where jobs are submitted there need be no GPU
        check_device_here(grid.device)
    for model in grid.models:
        check_towers(towers(grid, model))
        check_model(grid, model)


def check_model(grid: Grid, model: str) -> None:
    """Raise if `model` can't be built as configured, or doesn't keep to the contract of scorers.

    The contract is checked on these very towers if they are small, else on the smallest.
    """
    from dataclasses import replace

    from menagerie.models.contract import attempt, build, check_contract
    from menagerie.models.towers.config import SMALL_TOWERS

    here, options = towers(grid, model), grid.scorers.of(model)
    negatives = bool(negatives_of(grid.recipe, spec_of(model).negatives).texts)
    if here.architecture in SMALL_TOWERS:
        check_contract(model, here, options, negatives)
        return
    scratch = replace(here, pretrained="")
    attempt(model, f"on {here.architecture} can't be built", lambda: build(model, scratch, options))
    nano = replace(scratch, architecture="nano", resolution=32, tokenizer="")
    check_contract(model, nano, dict(spec_of(model).smoke), negatives)


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

    identity, files = render(grid, cores(grid))
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
    run_cells(waiting, grid.cluster, workers(grid), out, on_finished)
    clear_shared(out)
    print(f"report: {publish()}")
