"""The training runs of a study on photographs: every model at every place, with every seed and its starting weights."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.models.carry_over import check_start
from menagerie.models.checkpoint import read_config
from menagerie.models.library.cells import place_of
from menagerie.models.library.load import checkpoints_in
from menagerie.models.library.sources import Checkpoint
from menagerie.models.registry import same_scorer
from menagerie.models.towers.config import SMALL_TOWERS, TowerConfig
from menagerie.studies.frame.cells import cell_of, options_of, recipe_line, towers
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import data_of
from menagerie.studies.real_training.config import NONE, Config, TrainedOn, chosen, grid_of
from menagerie.studies.real_training.data import RealData
from menagerie.studies.real_training.photographs import Numbers, Opening
from menagerie.studies.runs.cell import Cell, Start
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import finished


def start_of(name: str, model: str, seed: int, towers: TowerConfig, options: dict[str, Any]) -> Start | None:
    """The checkpoint that `--from` names for one model and seed; raises unless it is one of that model on these
    towers."""
    if name == NONE:
        return None
    folder = checkpoint_of(name, model, seed)
    check_start(folder, model, towers, options)
    weights = Checkpoint(name, folder, model).identity()
    seen = (finished(folder.parent) or {}).get("images_seen", 0)
    return Start(weights, folder.resolve(), name, seen)


def checkpoint_of(name: str, model: str, seed: int) -> Path:
    """The one checkpoint of a model in a run, a cell or a checkpoint's folder; of several seeds the same seed."""
    folders = checkpoints_in(Path(name)) if Path(name).exists() else []
    if not folders:
        raise UserError(f"--from {name}: there is no run, no cell and no checkpoint")
    models = {folder: read_config(folder).model for folder in folders}
    of_model = [folder for folder in folders if same_scorer(models[folder], model)]
    if not of_model:
        there = ", ".join(sorted(set(models.values())))
        raise UserError(f"--from {name}: it has no {model}, only {there}; leave {model} out of --models")
    seeds = {place_of(folder.parent).get("seed") for folder in of_model}
    same = (
        of_model if len(seeds) == 1 else [folder for folder in of_model if place_of(folder.parent).get("seed") == seed]
    )
    if not same:
        raise UserError(
            f"--from {name}: it has no {model} of seed {seed}, only of {sorted(map(str, seeds))}; lower --seeds"
        )
    if len(same) > 1:
        some = ", ".join(f"{folder.parent} ({described(folder)})" for folder in same[:4])
        raise UserError(
            f"--from {name}: it has {len(same)} cells of {model}; name one of them: {some}{', …' * (len(same) > 4)}"
        )
    return same[0]


def described(folder: Path) -> str:
    """The place of a checkpoint's cell in its study, in words."""
    return ", ".join(f"{axis} {value}" for axis, value in place_of(folder.parent).items()) or "a lone checkpoint"


@dataclass(frozen=True)
class Described:
    """Photographs of some sources with one parser's graphs, which were read once to find out what they are."""

    photographs: str
    """Identity."""
    opening: Opening
    numbers: Numbers
    relational: bool


class Rendered(NamedTuple):
    """The splits of a study, one a seed, with their files."""

    splits: Sequence[tuple[CellData, int]]
    files: Mapping[CellData, Path]


Photos = Mapping[tuple[str, str], Described]


class Planned(NamedTuple):
    """A training run, and the file of its split."""

    cell: Cell
    place: TrainedOn
    data_file: Path


def planned(config: Config, photos: Photos, rendered: Rendered) -> list[Planned]:
    """All runs, seeds together, in the order of the study's places; a run that two of them name is there once."""
    every = [
        run_of(config, photos, rendered, model, place, seed)
        for seed in range(config.seeds)
        for model, place in chosen(config)
    ]
    return list({run.cell.id: run for run in every}.values())


def run_of(config: Config, photos: Photos, rendered: Rendered, model: str, place: TrainedOn, seed: int) -> Planned:
    from menagerie.models.towers.preparation import recorded

    there = photos[place.sources, place.parser]
    grid = grid_with_steps(config, there.numbers.images)
    synthetic = rendered.splits[seed][0] if place.mix else None
    data = RealData(
        photographs=there.photographs,
        sources=place.sources,
        parser=place.parser,
        mix=place.mix,
        synthetic=synthetic,
        opening=there.opening,
        numbers=there.numbers,
        closed=closed(towers(grid, model)),
        relational=there.relational,
    )
    cell = cell_of(grid, model, data, seed)
    if start := start_of(place.start, model, seed, towers(grid, model), options_of(grid, model)):
        as_read = replace(recorded(cell.towers, elsewhere=True), load=False)
        cell = replace(cell, start=start, base=None, towers=as_read)
    return Planned(cell, place, rendered.files[synthetic] if synthetic else there.opening.root)


def grid_with_steps(config: Config, images: int) -> Grid:
    """The study's grid, with the steps that its passes over so many photographs take."""
    grid = grid_of(config)
    if not config.epochs:
        return grid
    steps = max(1, math.ceil(config.epochs * images / grid.recipe.batch))
    return replace(grid, recipe=replace(grid.recipe, steps=steps))


def closed(config: TowerConfig) -> bool:
    """Whether towers have a vocabulary of their own."""
    return (config.tokenizer or "closed") == "closed" and config.architecture in SMALL_TOWERS


def recipes(config: Config, photos: Photos) -> dict[str, str]:
    """The recipe of each model, on each set of sources that takes other steps."""
    images = {sources: described.numbers.images for (sources, _), described in photos.items()}
    several = len(set(images.values())) > 1 and bool(config.epochs)
    lines = {}
    for model in config.models:
        for sources, count in list(images.items()) if several else list(images.items())[:1]:
            name = f"recipe of {model}" + (f" on {sources}" if several else "")
            lines[name] = recipe_line(grid_with_steps(config, count), model)
    return lines


def rendered_splits(config: Config, workers: int) -> Rendered:
    """Render the scenes that are mixed in; nothing where none are."""
    from menagerie.studies.grids.grid import render

    if not any(config.mix):
        return Rendered((), {})
    grid = grid_of(config)
    identity, files = render(grid, workers)
    return Rendered(data_of(grid, identity), files)
