"""Cells of runs: the one that a caller of `load_scorer` means, and what a cell's training had, from its record: its
data, the scorer that it is built on, and the weights that it began with."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import defaults_version
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import build_dataclass
from menagerie.envs.render import image_identity
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import VERSION
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import FileScenes, RecipeScenes, Training
from menagerie.models.cell_results import result_in
from menagerie.models.checkpoint import scorer_config
from menagerie.models.kept_states import STATES
from menagerie.models.library.sources import Checkpoint, ScorerSource
from menagerie.models.registry import short_name
from menagerie.models.towers.config import TowerConfig

SHOWN = 8  # most cells in a message


class CellFile(msgspec.Struct):
    """The fields read from a cell's result: seed, settings, and place in a study, by the names in `axes`."""

    model: str
    id: str = ""
    seed: int = 0
    axes: list[str] = []
    settings: dict[str, Any] = {}


def cell_result(cell: Path) -> dict[str, Any]:
    """Read a cell's result; empty for a checkpoint outside a study."""
    return result_in(cell, CellFile) or {}


def place_of_cell(cell: Path) -> dict[str, Any]:
    """The place of a cell in its study: axes and seed, by their names in its result."""
    result = cell_result(cell)
    return {axis: result[axis] for axis in (*result.get("axes", ()), "seed") if axis in result}


def find_cell(name: str, folders: Sequence[Path], wanted: Mapping[str, Any]) -> Path:
    """The checkpoint of the one cell that has the wanted model, axes, seed or settings (such as `options.dim`); raises
    if no cell or several match."""
    places = {f: {"model": short_name(scorer_config(f).model), **place_of_cell(f.parent)} for f in folders}
    named = {axis for place in places.values() for axis in place}
    known = places if set(wanted) <= named else with_settings(places)
    for axis in wanted:
        choose(f"axis of {name}", axis, list(dict.fromkeys(axis for place in known.values() for axis in place)))
    meant = [
        f for f, place in known.items() if all(a in place and equals_cell_value(place[a], v) for a, v in wanted.items())
    ]
    if len(meant) == 1:
        return meant[0]
    given = ", ".join(f"{axis}={value!r}" for axis, value in wanted.items())
    if not meant:
        raise UserError(f"{name} has no cell of {given}; it has {list_cells(places)}")
    raise UserError(
        f"{name} has {len(meant)} cells{f' of {given}' * bool(wanted)}; say which, by what tells them apart or by its "
        f"folder: {list_cells({folder: places[folder] for folder in meant})}"
    )


def equals_cell_value(of_cell: Any, value: Any) -> bool:
    """Whether a cell's value equals the wanted one, up to JSON's lists and the folder of a class's file."""
    if isinstance(value, str):
        return of_cell == short_name(value)
    return of_cell == (list(value) if isinstance(value, tuple) else value)


def list_cells(places: Mapping[Path, Mapping[str, Any]]) -> str:
    """List cells by the values on which they differ, in the form that `load_scorer` takes, each with its folder. If
    some have equal places, settings that differ are listed too."""
    words = differing_values(places)
    if len(set(words.values())) < len(words):
        words = differing_values(with_settings(places))
    lines = [f"{text} ({folder.parent})" if text else str(folder.parent) for folder, text in words.items()]
    return "; ".join(sorted(lines)[:SHOWN]) + "; …" * (len(lines) > SHOWN)


def with_settings(places: Mapping[Path, Mapping[str, Any]]) -> dict[Path, dict[str, Any]]:
    """Add each cell's settings to its place, whose values win for names in both."""
    settings = {folder: dict(flatten(cell_result(folder.parent).get("settings", {}))) for folder in places}
    return {folder: {**place, **settings[folder], **place} for folder, place in places.items()}


def differing_values(places: Mapping[Path, Mapping[str, Any]]) -> dict[Path, str]:
    """For each cell, its values on the axes on which the cells differ."""
    axes = dict.fromkeys(axis for place in places.values() for axis in place)
    varied = [axis for axis in axes if len({repr(place.get(axis)) for place in places.values()}) > 1]
    return {
        folder: ", ".join(f"{axis}={place[axis]!r}" for axis in varied if axis in place)
        for folder, place in places.items()
    }


def flatten(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings under dotted names."""
    for name, value in settings.items():
        yield from (flatten(value, f"{above}{name}.") if isinstance(value, Mapping) else [(f"{above}{name}", value)])


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
    """Return what the data in a cell's settings had: a split, or photographs, perhaps with a split mixed in."""
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
    """Return the scenes of a recorded recipe; raises unless this program makes the same ones in the same world."""
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
