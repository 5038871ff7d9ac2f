"""Where do the queries look? Figure 8 of OC-CLIP, with the true masks beside it.

    python studies/attention.py runs/binding_grid-laptop

For every finished cell of a grid whose model has attention: the overlap (intersection over union) of each query's map
with the mask of its own animal and of the other, at the threshold that is best on validation. Writes attention.csv,
validation first, by which anything about the maps is chosen, then the tests, and a picture for each cell. Models
without attention are left out. A class of your own takes part if you name it, so that its file is run:

    python studies/attention.py runs/mine --code mine.py:Mine
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from jaxtyping import Float, UInt8

from menagerie.envs.core.command_help import read_options, started_as
from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import Range, build

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.evaluation.attention_maps import Maps

# What is measured in each subset of a cell; before it stand the cell's model, its seed and its place in the study.
MEASURED = ("subset", "overlap", "own_above_other", "threshold", "n")


@dataclass(frozen=True)
class Config:
    """Measure the attention of a run's cells."""

    run: tyro.conf.Positional[Path]
    """Folder of a binding grid or a spatial grid."""
    code: tuple[str, ...] = ()
    """Classes of your own (file.py:Class) whose cells are measured: their files are run."""
    store: Path | None = None
    """Folder of the image stores; empty takes the one that the run was given."""
    scenes: Annotated[int, Range(1, 1000)] = 4
    """Scenes in each cell's picture."""


def read_config(run: Path) -> tuple[Path, list[Path]]:
    """The folder of the image stores that a run was given, and its split files, if it was given any."""
    try:
        config = read_record(run / "config.json")["config"]
        return Path(config["store"]), list(map(Path, config.get("split", ())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a grid: its config.json can't be read ({error})") from error


def split_file(store: Path, given: Sequence[Path], cell: dict[str, Any]) -> Path:
    """The split that a cell was trained on: one of the files that its run was given, or made of a recipe."""
    from menagerie.generators.splits.recipe_file import KINDS
    from menagerie.generators.storage.split_file import check_recipe, content_identity, read_split, split_name

    data = cell["settings"]["data"]
    if "split_file" in data:
        paths = [file for file in given if file.exists() and content_identity(read_split(file)) == data["split_file"]]
        place = f"among {', '.join(map(str, given))}"
    else:
        kind = KINDS[choose(f"kind of split of cell {cell['id']}", data["kind"], KINDS)]
        recipe = build(kind, data["split"])
        paths = list(store.glob(f"*-{data['store']}/{split_name(recipe)}"))
        for path in paths:
            check_recipe(read_split(path), recipe, data["store"])
        place = f"below the folder {store.resolve()}"
    if len(paths) != 1:
        raise UserError(
            f"the split of cell {cell['id']} is not {place}; start this command where the study was started, name its "
            "--store, or run the study again: it renders what is missing"
        )
    return paths[0]


def scorer_with_attention(cell: dict[str, Any], folder: Path, code: Sequence[str]) -> Any | str:
    """The cell's scorer, or why it is left out: it has no attention, or its code is somebody's own and not named."""
    from menagerie.models.checkpoint import load_checkpoint
    from menagerie.models.registry import is_own, same_scorer

    model = cell["model"]
    if is_own(model):
        model = next((given for given in code if same_scorer(given, model)), None)
        if model is None:
            return f"{cell['model']} is left out: its file is run only if you add --code {cell['model']}"
    scorer = load_checkpoint(folder / "checkpoint", model)
    return scorer if "attention" in scorer.capabilities else f"{cell['model']} has no attention and is left out"


def measure(cell: dict[str, Any], scorer: Any, folder: Path, path: Path, scenes: int) -> list[dict[str, Any]]:
    """A row of `MEASURED` for validation and each test of one cell, and its picture.

    The threshold is chosen on validation, for all of them.
    """
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.pixels import open_split
    from menagerie.models.evaluation.attention_maps import attention_maps, best_threshold, overlap

    split = open_split(path)
    tests = sorted(split.subsets.keys() - {"train", "validation"})
    subsets = {name: SplitDataset(split, name) for name in ("validation", *tests)}
    measured = {}
    for name, data in subsets.items():
        if len(data):
            everything = range(len(data))
            measured[name] = attention_maps(scorer, data, everything), data.masks(everything).numpy()
    if "validation" not in measured:
        raise UserError(f"{path} has no scene in validation, on which the threshold of the maps is chosen")
    threshold = best_threshold(*measured["validation"])
    shown = min(measured, key=lambda name: (not name.endswith("unseen_pairs"), name == "validation"))
    picture(folder / "attention.png", subsets[shown], measured[shown][0], scenes)
    rows = []
    for name, (maps, masks) in measured.items():
        fit = overlap(maps, masks, threshold)
        rows.append(dict(zip(MEASURED, (name, fit.mean, fit.right, threshold, len(masks)), strict=True)))
    return rows


def place_text(cell: dict[str, Any], axes: Sequence[str]) -> str:
    """A cell for people, by its model, its place in the study and its seed."""
    from menagerie.studies.runs.data import FRACTIONS
    from menagerie.studies.runs.results import place_of

    more = [name for name in axes if name not in FRACTIONS]
    others = "".join(f" {name} {value}" for name, value in zip(more, place_of(cell, more), strict=True))
    fractions = f"{cell['pairs']:.0%} pairs {cell['hard_negatives']:.0%} negatives"
    return f"{cell['model']} {fractions}{others} seed {cell['seed']}"


def picture(path: Path, data: "SplitDataset", maps: "Maps", scenes: int) -> None:
    """Image, the map of each query, and what the default tokens take, for some scenes."""
    from menagerie.envs.core.figures import write_png
    from menagerie.generators.captions.phrases import phrase

    chosen = [len(data) * (2 * i + 1) // (2 * scenes) for i in range(scenes)]
    images = data.images(chosen).permute(0, 2, 3, 1).numpy()
    phrases = [[phrase(thing) for thing in data.records.scenes[i].things] for i in chosen]
    write_png(path, attention_sheet(images, phrases, maps.things[chosen], maps.rest[chosen]))


def attention_sheet(
    images: UInt8[np.ndarray, "n h w 3"],
    phrases: Sequence[Sequence[str]],
    things: Float[np.ndarray, "n 2 h w"],
    rest: Float[np.ndarray, "n h w"],
) -> "Figure":
    """A row per scene: the image, the map of each of its two queries, and what the default tokens take."""
    from matplotlib.figure import Figure

    figure = Figure((8.8, 2.3 * len(images)), layout="constrained")
    for row, image, names, maps, left in zip(
        figure.subplots(len(images), 4, squeeze=False), images, phrases, things, rest, strict=True
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


def run(config: Config) -> None:
    """Measure all cells, print and write the table."""
    from menagerie.envs.core.files import write_csv
    from menagerie.studies.runs.results import axes_of, place_of, read_results

    (store, given), cells = read_config(config.run), read_results(config.run)
    axes, rows = axes_of(cells), []
    for cell in cells:
        folder = config.run / "cells" / cell["id"]
        scorer = scorer_with_attention(cell, folder, config.code)
        if isinstance(scorer, str):
            print(scorer, flush=True)
            continue
        place = (cell["model"], cell["seed"], *place_of(cell, axes))
        for row in measure(cell, scorer, folder, split_file(config.store or store, given, cell), config.scenes):
            print(f"{place_text(cell, axes)}  {row['subset']:<14} overlap {row['overlap']:.3f}  ", end="")
            print(f"own above other {row['own_above_other']:.1%}  ({row['n']} scenes)", flush=True)
            rows.append([*place, *row.values()])
        print(f"picture: {folder / 'attention.png'}")
    if not rows:
        print(f"nothing to measure: no finished cell of {config.run} has a model with attention that may be loaded")
        return
    write_csv(config.run / "attention.csv", ("model", "seed", *axes, *MEASURED), rows)
    print(config.run / "attention.csv")


def main() -> None:
    run(read_options(Config, sys.argv[1:], started_as(), __doc__))


if __name__ == "__main__":
    run_command(main)
