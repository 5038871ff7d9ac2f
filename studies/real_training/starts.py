"""The trained weights that cells start with: a cell of the same model in a run, of the same seed of several."""

from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.models.carry_over import check_start
from menagerie.models.checkpoint import read_config
from menagerie.models.library.cells import place_of
from menagerie.models.library.find import checkpoints_in
from menagerie.models.library.sources import Checkpoint
from menagerie.models.registry import same_scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.real_training.config import NONE
from menagerie.studies.runs.cell import Start
from menagerie.studies.runs.results import finished


def start_of(name: str, model: str, seed: int, towers: TowerConfig, options: dict[str, Any]) -> Start | None:
    """What `--from` names, for one model and seed; raises unless it is one checkpoint of that model on these towers."""
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
    own = [folder for folder in folders if same_scorer(models[folder], model)]
    if not own:
        there = ", ".join(sorted(set(models.values())))
        raise UserError(f"--from {name}: it has no {model}, only {there}; leave {model} out of --models")
    seeds = {place_of(folder.parent).get("seed") for folder in own}
    same = own if len(seeds) == 1 else [folder for folder in own if place_of(folder.parent).get("seed") == seed]
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
    """Where in its study a checkpoint's cell is."""
    return ", ".join(f"{axis} {value}" for axis, value in place_of(folder.parent).items()) or "a lone checkpoint"
