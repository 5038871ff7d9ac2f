"""Where do the queries attend? Figure 8 of OC-CLIP, compared with true masks.

    python studies/attention.py runs/binding_grid-laptop

For every finished cell of a grid whose model has attention: the overlap (intersection over union) of each query's map
with the mask of its own animal and of the other, at the threshold that is best on validation. DCSM attends nowhere; its
maps are the cosines of a phrase's words with the patches, which its network reads. Writes attention.csv and a picture
for each cell. Scenes that a model's training had are left out, and counted in attention.csv. Run again, it
measures new cells. Cells of a class of your own are measured only if you name it, because its file is run:

    python studies/attention.py runs/mine --code mine.py:Mine
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from menagerie.envs.core.command_help import read_options, running_command
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import SOME_PROCESSES, Range
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import split_name
from menagerie.models.registry import is_own, same_scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.measure import read_measured
from menagerie.studies.runs.executor import run_jobs
from menagerie.studies.runs.slurm import Cluster, check_cluster

if TYPE_CHECKING:
    from menagerie.studies.frame.arm import Arm
    from menagerie.studies.frame.records import Records
    from menagerie.studies.measures.attention import AttentionJob


@dataclass(frozen=True)
class Config:
    """Measure the attention of a run's cells."""

    run: tyro.conf.Positional[Path]
    """Folder of a binding grid or a spatial grid."""
    code: tuple[str, ...] = ()
    """Classes of your own (file.py:Class) whose cells are measured: their files are run."""
    store: Path | None = None
    """Folder of atlases and split files; empty takes the one that the run was given."""
    scenes: Annotated[int, Range(1, 1000)] = 4
    """Scenes in each cell's picture."""
    workers: Annotated[int, SOME_PROCESSES] = 0
    """Cells that are measured at once; 0 takes one a core."""
    cluster: Annotated[Cluster, tyro.conf.arg(name="")] = field(default_factory=Cluster)
    """Where cells are measured."""


def store_of_run(run: Path) -> Path:
    """Return the `--store` of a run; raises if its config.json can't be read."""
    try:
        return Path(read_record(run / "config.json")["config"]["store"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a grid: its config.json can't be read ({error})") from error


def split_file(store: Path, cell: Path, settings: Mapping[str, Any]) -> Path:
    """Find the split file that a cell was trained on: among the files that its run was given, or below `store` if the
    split was made from a recipe. Raise unless it is there."""
    from menagerie.models.library.cells import find_split_file, read_recipe_scenes

    if "split_file" in settings["data"]:
        return find_split_file(settings["data"]["split_file"], cell).file
    side = settings.get("towers", {}).get("resolution", TowerConfig.resolution)
    recipe = read_recipe_scenes(settings["data"], side, cell).recipe
    path = SplitFolder(store, load_world(recipe.world), side).folder / split_name(recipe)
    if not path.exists():
        raise UserError(
            f"the split of cell {cell.name} is not below the folder {store.resolve()}; start this command in the "
            "directory of the study, give its --store, or run the study again: it renders what is missing"
        )
    return path


def jobs_of(config: Config, records: "Records") -> "Iterator[tuple[Arm, AttentionJob]]":
    """Yield each finished cell whose code may be run, with its measuring job; print which are left out."""
    from menagerie.studies.measures.attention import Attention, AttentionJob

    store = config.store or store_of_run(config.run)
    for arm, result in records.results:
        model = result["model"]
        if is_own(model):
            if not (given_as := [name for name in config.code if same_scorer(name, model)]):
                print(f"{model} is left out: its file is run only if you add --code {model}", flush=True)
                continue
            model = given_as[0]
        cell = records.folder(arm)
        split = split_file(store, cell, result["settings"])
        yield arm, AttentionJob(cell, model, result["seed"], split, Attention(config.scenes))


def draw_cell(path: Path, split: Path, row: Mapping[str, Any]) -> None:
    """Draw a line for each scene whose maps `row` has: its image, the map of each of its two queries, and the attention
    to the default tokens. Write the picture to `path`."""
    from matplotlib.figure import Figure

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.studies.analysis.pictures import write_png

    data = SplitDataset(split, row["subset"])
    images = data.images(row["shown"]).permute(0, 2, 3, 1).numpy()
    figure = Figure((8.8, 2.3 * len(images)), layout="constrained")
    lines = zip(figure.subplots(len(images), 4, squeeze=False), images, row["shown"], strict=True)
    for (axes, image, scene), maps, left in zip(lines, row["objects"], row["rest"], strict=True):
        axes[0].imshow(image)
        names = [phrase(obj) for obj in data.records.scenes[scene].objects]
        for axis, name in zip(axes, ("image", *names, "default tokens"), strict=True):
            axis.set_title(name, fontsize=9)
            axis.axis("off")
        for axis, values in zip(axes[1:3], np.array(maps), strict=True):
            axis.imshow(image.mean(-1), cmap="gray", vmin=0, vmax=255)
            axis.imshow(values, cmap="inferno", alpha=0.75, vmin=0, vmax=max(float(values.max()), 1e-6))
        figure.colorbar(axes[3].imshow(np.array(left), cmap="inferno", vmin=0, vmax=1), ax=axes[3], shrink=0.8)
    write_png(path, figure)


def measure_run(config: Config) -> None:
    """Measure all cells, print their results, and write the table."""
    from menagerie.studies.analysis.tables import print_table
    from menagerie.studies.frame.records import read
    from menagerie.studies.measures.attention import MEASURED, NUMBERS

    store_of_run(config.run)  # raises if the folder isn't a run
    check_cluster(config.cluster, config.run)
    records = read(config.run)
    jobs = list(jobs_of(config, records))
    workers = config.workers or usable_cores()
    run_jobs([job for _, job in jobs], config.cluster, workers, config.run, lambda _: None)
    table = [row for arm, job in jobs for row in measured_rows(arm, job)]
    if not table:
        print(f"nothing to measure: no finished cell of {config.run} has a model with attention that may be loaded")
        return
    place = dict.fromkeys(name for arm in records.arms for name in arm.place)
    columns, shown = [*place, *MEASURED], [*place, *NUMBERS, "left_out"]
    write_csv(config.run / "attention.csv", columns, ([row.get(name) for name in columns] for row in table))
    values = [[row.get(name) for name in shown] for row in table]
    rows = [[f"{its:.3f}" if isinstance(its, float) else str(its) for its in row] for row in values]
    print_table(shown, rows, "overlap of queries' maps with masks; left out: scenes that training had")
    print(config.run / "attention.csv")


def measured_rows(arm: "Arm", job: "AttentionJob") -> Iterator[dict[str, Any]]:
    """Yield a cell's measurements as rows, each with the cell's place, and draw the cell's picture."""
    rows = read_measured(job.cell, job.measure)
    if not rows:
        print(f"{arm.cell.model} has no attention and is left out", flush=True)
        return
    yield from (arm.place | row for row in rows)
    for row in (row for row in rows if row["shown"]):  # one, unless training had all scenes
        draw_cell(job.cell / "attention.png", job.split, row)


if __name__ == "__main__":
    run_command(lambda: measure_run(read_options(Config, sys.argv[1:], running_command(), __doc__ or "")))
