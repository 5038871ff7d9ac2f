"""What the training of a study's cell had, from the record of that cell: its data, the scorer that it is built on, and
the weights that it began with."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import defaults_version
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import build_dataclass
from menagerie.envs.render import image_identity
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import VERSION
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import FileScenes, RecipeScenes, Training
from menagerie.models.kept_states import STATES
from menagerie.models.library.cells import cell_result
from menagerie.models.library.sources import Checkpoint, ScorerSource
from menagerie.models.towers.config import TowerConfig


def find_training(source: ScorerSource) -> Training:
    """Return what the training of a scorer had; unknown unless a study here trained it."""
    return checkpoint_training(source.folder) if isinstance(source, Checkpoint) else Training.nowhere()


def checkpoint_training(checkpoint: Path) -> Training:
    """Return what the training of a checkpoint had. It is unknown unless the checkpoint, or a state kept during
    training, lies in the folder of a finished cell."""
    cell = checkpoint.absolute().parent
    cell = cell.parent if cell.name == STATES else cell
    result = cell_result(cell)
    if not result.get("settings"):
        return Training(unknown=("no record of a study lies beside its weights",))
    return settings_training(result["settings"], cell) | training_before(result, cell)


def settings_training(settings: Mapping[str, Any], cell: Path) -> Training:
    """Return what a cell's own steps had, and those of the scorer that it is built on."""
    towers = settings.get("towers", {})
    found = data_training(settings.get("data", {}), towers.get("resolution", TowerConfig.resolution), cell)
    return found | settings_training(settings["base"], cell) if "base" in settings else found


def training_before(result: Mapping[str, Any], cell: Path) -> Training:
    """Return what was trained before a cell's first step: the weights of another cell, or of others' towers."""
    settings, start = result["settings"], result.get("carried", {}).get("from", "")
    if "start" not in settings:
        weights = settings.get("towers", {}).get("pretrained", "")
        return Training(unknown=(f"the training of the weights {weights}",)) if weights else Training()
    there = Path(start)
    for folder in (there, cell.parent / there.parent.name / there.name):  # the whole run may lie elsewhere now
        if is_checkpoint(folder, result["model"], settings["start"]):
            return checkpoint_training(folder)
    return Training(unknown=("the training of the weights that it began with, which aren't where they were",))


def is_checkpoint(folder: Path, model: str, identity: str) -> bool:
    """Whether a folder has the checkpoint of a scorer with this identity."""
    try:
        return Checkpoint("", folder, model).identity() == identity
    except (UserError, OSError):  # it isn't there, is damaged, or lacks the user's file
        return False


def data_training(data: Mapping[str, Any], resolution: int, cell: Path) -> Training:
    """Return what the data in a cell's settings had: a split of a recipe, a split file, or photographs, perhaps with a
    split mixed in."""
    try:
        if "photographs" in data:
            alone, mix = Training(photographs=(cell,)), data.get("synthetic")
            return alone | data_training(mix, resolution, cell) if mix else alone
        if "split_file" in data:
            return Training((find_split_file(data["split_file"], cell),))
        return Training((read_recipe_scenes(data, resolution, cell),))
    except (UserError, KeyError) as error:  # also data of a user's own kind
        return Training(unknown=(f"what its training data show ({error})",))


def read_recipe_scenes(data: Mapping[str, Any], resolution: int, cell: Path) -> RecipeScenes:
    """Return the scenes of a recipe that settings record; raises unless this program makes the same ones in the same
    world."""
    kind = KINDS.get(data["kind"])
    if kind is None or data.get("version") != VERSION or defaults_version(kind).get("defaults") != data.get("defaults"):
        raise UserError("its recipe is of another version of this program")
    named = data["split"].get("world", kind.world)
    there = [] if named.endswith(".toml") and not Path(named).exists() else [named]
    for world in (*there, *map(str, sorted(cell.parents[1].glob("worlds/*.toml")))):  # those that the run wrote itself
        if image_identity(load_world(world), resolution) == data["store"]:
            return RecipeScenes(build_dataclass(kind, data["split"] | {"world": world}), data.get("images", 0))
    raise UserError(f"the world {Path(named).stem}, or how this program draws it, isn't what it was")


@lru_cache(maxsize=256)
def find_split_file(content: str, cell: Path) -> FileScenes:
    """Find the split file with this content among those that a run was given; raises if it isn't there any more."""
    given = read_record(cell.parents[1] / "config.json")["config"].get("split", ())
    for file in map(Path, given):
        if file.exists() and read_split(file).content == content:
            return FileScenes(file.absolute(), content)
    raise UserError(f"its split file isn't where it was: {', '.join(Path(path).name for path in given)}")
