"""What do SPARO's slots hold? Its tables 4 to 6 and figures 3 and 4, on our world.

    python studies/sparo.py --preset smoke               # tiny world, a minute or two on 2 cores
    python studies/sparo.py                              # laptop: eight animals, 32 px, 3 seeds
    python studies/sparo.py --parts selection pictures   # of SPARO as it is alone

Parts: selection (table 4: slots are ranked one by one on validation, half of them stay, with random and worst halves
beside), masks (table 5: trained on one task, tested on the others), ladder (table 6: from attentional pooling to
SPARO), sweeps (figure 3: number and width of slots), pictures (figure 4: patches and words that slots attend to). All
on one place of the binding grid. DINO with SPARO is left out: nothing here trains images without texts.

Ends with `report.html` and its tables as CSV and LaTeX in `--out`. Run again, it skips what is finished.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.options import FIRST, WHAT
from menagerie.envs.core.processes import in_child
from menagerie.envs.core.validation import RUNS, Range, option, validate
from menagerie.generators.captions.hard_negatives.foils import TASKS
from menagerie.models.recipe import Recipe
from menagerie.studies.ablation.cells import check_rows
from menagerie.studies.ablation.rows import ablated, changed
from menagerie.studies.frame.cells import recipe_line, towers
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.grid import Grid
from menagerie.studies.frame.overrides import check_files, check_overrides
from menagerie.studies.frame.presets import SMOKE
from menagerie.studies.grids.grid import cells, chosen_alone, render
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.command_line import EXECUTION, parse
from menagerie.studies.slots.runs import MODEL, SWEPT, Rows, jobs_of, rows

Part = Literal["selection", "masks", "ladder", "sweeps", "pictures"]
SIZES = Range(1, 4096)
PARTS: tuple[Part, ...] = ("selection", "masks", "ladder", "sweeps", "pictures")


@dataclass(frozen=True)
class Config(Grid):
    """One study of slots."""

    title: ClassVar[str] = "SPARO's slots"

    parts: Annotated[tuple[Part, ...], WHAT, FIRST] = PARTS
    """What is done: these or some."""
    models: tuple[str, ...] = (MODEL, "clip", "clip-gap")
    """SPARO and models beside it. These are level lines of the sweeps; their vectors get masks too."""
    slot_counts: Annotated[tuple[int, ...], WHAT, FIRST, SIZES] = (4, 8, 16, 32, 64)
    """Numbers of slots. Swept at the width that --sparo.dim gives."""
    slot_widths: Annotated[tuple[int, ...], WHAT, FIRST, SIZES] = (2, 4, 16, 64, 256)
    """Widths of slots. Swept at the number that --sparo.slots gives."""
    mask_tasks: Annotated[tuple[str, ...], WHAT] = ("swap", "replace texture")
    """Tasks that masks are trained on, each by itself, on validation."""
    random_halves: Annotated[int, WHAT, RUNS] = 20
    """Random halves of the slots, of which the control is the mean."""
    scenes: Annotated[int, WHAT, Range(1, 1000)] = 4
    """Scenes in the pictures of slots."""
    pairs: tuple[float, ...] = (0.4,)
    """Fraction of the trainable animal pairs; one."""
    hard_negatives: tuple[float, ...] = (0.0,)
    """Fraction of these pairs that have hard negatives too; one."""
    seeds: int = 3
    """Number of seeds, from 0; each decides split and training."""
    architecture: str = "mini"
    """Towers. Of two blocks or more, so that SPARO can take the place of the last."""


PRESETS: dict[str, Config] = {
    "smoke": Config(
        **SMOKE | {"recipe": Recipe(steps=40, batch=32, warmup=5), "architecture": "mini"},
        **{"models": (MODEL, "clip-gap"), "views": 4, "seeds": 1, "scenes": 2},
        **{"slot_counts": (4, 8), "slot_widths": (4, 8, 16), "random_halves": 4},
    ),
    # One recipe for all: rows and models differ in nothing else.
    "laptop": Config(
        **{"world": "eight", "resolution": 32, "views": 8, "test_views": 2, "test_scenes": 200},
        recipe=Recipe(steps=1500, single_object_phase=0.25, singles_share=0.5),
    ),
}


def swept(config: Config) -> dict[str, tuple[int, ...]]:
    """The values of each field that is swept."""
    values = zip(SWEPT, (config.slot_counts, config.slot_widths), strict=True)
    return dict(values) if "sweeps" in config.parts else {}


def rows_of(config: Config) -> Rows:
    return rows("ladder" in config.parts, swept(config))


def check(config: Config) -> None:
    validate(config)
    if MODEL not in config.models:
        raise UserError(f"--models needs {MODEL}, whose slots are studied, and any others beside it")
    if not config.parts:
        raise UserError(f"--parts needs one or more of {', '.join(PARTS)}")
    for name in ("slot_counts", "slot_widths", "mask_tasks"):
        if not getattr(config, name):
            raise UserError(f"{option(name)} needs one or more values, got none; --parts leaves out what isn't wanted")
    for task in config.mask_tasks:
        choose("task of --mask-tasks", task, TASKS)
    check_grid(config)
    if len(config.places) != 1:
        raise UserError("slots are studied at one place: one --pairs and one --hard-negatives, or one --split")
    in_child(check_rows, {line: varied for line, varied in cells_of_rows(config).items() if line})
    if "masks" in config.parts:
        in_child(check_masks, config)


def cells_of_rows(config: Config) -> dict[str, Cell]:
    """SPARO's cell of the first seed in each row, by the row's line."""
    (cell,) = (cell for cell in cells(replace(config, seeds=1), "") if cell.model == MODEL)
    return {line: changed(ablated(MODEL), cell, line) if line else cell for line in rows_of(config).lines.values()}


def check_masks(config: Config) -> None:
    """Raise for a model whose vectors can't be masked."""
    from menagerie.studies.slots.codes import check_vectors

    for model in config.models:
        check_vectors(model, towers(config, model), config.scorers.of(model))


def run(config: Config, out: Path) -> None:
    """Train what isn't finished, and write tables, figures and report."""
    import torch

    from menagerie.envs.core.progress import Sparing
    from menagerie.studies.runs.dispatch import run_cells
    from menagerie.studies.runs.results import finished
    from menagerie.studies.runs.shared import clear_shared
    from menagerie.studies.slots.report import publish

    torch.set_num_threads(config.threads)  # sums depend on it, and masks take twenty times as long with two
    identity, files = render(config, config.cores)
    jobs = jobs_of(config, identity, files, out, rows_of(config).lines)
    notes = {f"recipe of {model}": recipe_line(config, model) for model in config.models}
    every = {job.folder: job for batch in jobs.values() for job in batch}
    waiting = [job for folder, job in every.items() if finished(folder) is None]
    print(f"{len(every)} runs, {len(waiting)} of them to train", flush=True)
    sparing = Sparing()
    run_cells(
        waiting,
        config.cluster,
        config.at_once,
        out,
        lambda job: sparing(lambda: publish(out, config, rows_of(config), jobs, notes)),
    )
    clear_shared(out)
    print(f"report: {publish(out, config, rows_of(config), jobs, notes)}")


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    check_overrides(config, PRESETS[preset])
    check_files(config, PRESETS[preset])
    config = config.settled()
    check(config)
    if config.dry_run:
        from menagerie.studies.frame.dry_run import dry_run

        dry_run(config)
        others = len({cell.id for cell in cells_of_rows(config).values()}) - 1
        print(f"and {config.seeds * others} more runs of {MODEL}, of other sizes and parts")
        return
    from menagerie.studies.runs.folder import run_folder

    config = chosen_alone(config)
    with run_folder(config.out or Path(f"runs/sparo-{preset}"), config, EXECUTION | {"seeds"}) as out:
        run(config, out)


if __name__ == "__main__":
    run_command(main)
