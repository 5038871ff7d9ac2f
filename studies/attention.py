"""Where do the queries attend? Figure 8 of OC-CLIP, compared with true masks.

    python studies/attention.py runs/binding_grid-laptop

For every finished cell of a grid whose model has attention: the overlap (intersection over union) of each query's map
with the mask of its own animal and of the other, at the threshold that is best on validation. Writes attention.csv and
a picture for each cell. In the table validation, on which the threshold is chosen, comes before the tests.
Models without attention are left out, and so are scenes that a model's training had; attention.csv has the counts. Run
again, it measures new cells. Cells of a class of your own are measured only if you name it, because its file is run:

    python studies/attention.py runs/mine --code mine.py:Mine
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from jaxtyping import Float, UInt8

from menagerie.envs.core.command_help import read_options, running_command
from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import SOME_PROCESSES, Range, build_dataclass
from menagerie.studies.cluster.jobs import Cluster, check_cluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def read_run_config(run: Path) -> tuple[Path, list[Path]]:
    """Return the `--store` of a run, and its split files, if any. Raises if its config.json can't be read."""
    try:
        config = read_record(run / "config.json")["config"]
        return Path(config["store"]), list(map(Path, config.get("split", ())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a grid: its config.json can't be read ({error})") from error


def split_file(store: Path, given: Sequence[Path], cell: dict[str, Any]) -> Path:
    """Find the split file that a cell was trained on: among the files that its run was given, or below `store` if the
    split was made from a recipe. Raise unless there is exactly one."""
    from menagerie.generators.splits.recipe_file import KINDS
    from menagerie.generators.storage.split_file import check_recipe, read_split, split_name

    data = cell["settings"]["data"]
    if "split_file" in data:
        paths = [file for file in given if file.exists() and read_split(file).content == data["split_file"]]
        place = f"among {', '.join(map(str, given))}"
    else:
        kind = KINDS[choose(f"kind of split of cell {cell['id']}", data["kind"], KINDS)]
        recipe = build_dataclass(kind, data["split"])
        paths = list(store.glob(f"*-{data['store']}/{split_name(recipe)}"))
        for path in paths:
            check_recipe(read_split(path), recipe, data["store"])
        place = f"below the folder {store.resolve()}"
    if len(paths) != 1:
        raise UserError(
            f"the split of cell {cell['id']} is not {place}; start this command in the directory of the study, "
            "give its --store, or run the study again: it renders what is missing"
        )
    return paths[0]


def jobs_of(config: Config, records: "Records") -> "Iterator[tuple[Arm, AttentionJob]]":
    """Yield each finished cell whose code may be run, with its measuring job; print which are left out."""
    from menagerie.models.registry import is_own, same_scorer
    from menagerie.studies.measures.attention import Attention, AttentionJob

    store, given = read_run_config(config.run)
    for arm, result in records.results:
        model = result["model"]
        if is_own(model):
            if not (given_as := [name for name in config.code if same_scorer(name, model)]):
                print(f"{model} is left out: its file is run only if you add --code {model}", flush=True)
                continue
            model = given_as[0]
        split = split_file(config.store or store, given, result)
        yield arm, AttentionJob(records.folder(arm), model, result["seed"], split, Attention(config.scenes))


def draw_cell(path: Path, split: Path, row: Mapping[str, Any]) -> None:
    """Draw, for each scene whose maps `row` has, its image, the map of each query, and the attention to the default
    tokens. Write the picture to `path`."""
    from menagerie.generators.captions.phrases import phrase
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.studies.analysis.pictures import write_png

    data = SplitDataset(split, row["subset"])
    images = data.images(row["shown"]).permute(0, 2, 3, 1).numpy()
    phrases = [[phrase(obj) for obj in data.records.scenes[i].objects] for i in row["shown"]]
    write_png(path, attention_sheet(images, phrases, np.array(row["objects"]), np.array(row["rest"])))


def attention_sheet(
    images: UInt8[np.ndarray, "n h w 3"],
    phrases: Sequence[Sequence[str]],
    objects: Float[np.ndarray, "n 2 h w"],
    rest: Float[np.ndarray, "n h w"],
) -> "Figure":
    """Draw a row per scene: its image, the map of each of its two queries, and the attention to the default tokens."""
    from matplotlib.figure import Figure

    figure = Figure((8.8, 2.3 * len(images)), layout="constrained")
    for row, image, names, maps, left in zip(
        figure.subplots(len(images), 4, squeeze=False), images, phrases, objects, rest, strict=True
    ):
        row[0].imshow(image)
        row[0].set_title("image", fontsize=9)
        for axis, name, values in zip(row[1:3], names, maps, strict=True):
            axis.imshow(image.mean(-1), cmap="gray", vmin=0, vmax=255)
            axis.imshow(values, cmap="inferno", alpha=0.75, vmin=0, vmax=max(float(values.max()), 1e-6))
            axis.set_title(name, fontsize=9)
        shown = row[3].imshow(left, cmap="inferno", vmin=0, vmax=1)
        row[3].set_title("default tokens", fontsize=9)
        figure.colorbar(shown, ax=row[3], shrink=0.8)
        for axis in row:
            axis.axis("off")
    return figure


def measure_run(config: Config) -> None:
    """Measure all cells, print their results, and write the table."""
    from menagerie.studies.analysis.tables import print_table
    from menagerie.studies.frame.records import read
    from menagerie.studies.measures.attention import MEASURED, NUMBERS
    from menagerie.studies.runs.executor import run_jobs

    read_run_config(config.run)  # raises if the folder isn't a run
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
    columns = [*place, *MEASURED]
    write_csv(config.run / "attention.csv", columns, ([row.get(name) for name in columns] for row in table))
    shown = [*place, *NUMBERS, "left_out"]
    rows = [
        [f"{value:.3f}" if isinstance(value, float) else str(value) for value in map(row.get, shown)] for row in table
    ]
    print_table(shown, rows, "overlap of queries' maps with masks; left out: scenes that training had")
    print(config.run / "attention.csv")


def measured_rows(arm: "Arm", job: "AttentionJob") -> Iterator[dict[str, Any]]:
    """Yield a cell's measurements as rows, each with the cell's place, and draw the cell's picture."""
    from menagerie.studies.frame.measure import read_measured

    rows = read_measured(job.cell, job.measure)
    if not rows:
        print(f"{arm.cell.model} has no attention and is left out", flush=True)
        return
    yield from (arm.place | row for row in rows)
    (shown,) = (row for row in rows if row["shown"])
    draw_cell(job.cell / "attention.png", job.split, shown)


if __name__ == "__main__":
    run_command(lambda: measure_run(read_options(Config, sys.argv[1:], running_command(), __doc__ or "")))
