"""The models of a command line: each a source of one scorer; a run of many cells is as many models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from envs.common.errors import UserError
from models.library.find import checkpoint, checkpoints_in, find_source
from models.library.sources import Checkpoint, Source
from models.registry import short_name
from models.towers.config import TowerConfig
from studies.runs.cell import finished


@dataclass(frozen=True)
class Model:
    """A scorer to be evaluated."""

    label: str
    """In tables."""
    source: Source

    @cached_property
    def weights(self) -> str:
        """Hash of all that decides its scores."""
        return self.source.identity()


def models_of(names: Sequence[str], code: Sequence[str], towers: TowerConfig) -> list[Model]:
    """All models that the names stand for; one that is nothing raises."""
    models = [model for name in names for model in models_named(name, code, towers)]
    labels = [model.label for model in models]
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise UserError(f"the model {again} is given twice")
    return models


def models_named(name: str, code: Sequence[str], towers: TowerConfig) -> list[Model]:
    """One model, or all cells of a run, labelled by what they differ in."""
    folders = checkpoints_in(Path(name)) if Path(name).is_dir() else []
    if len(folders) < 2:
        source = find_source(name, code, towers)
        return [Model(label_of(name, source), source)]
    sources = [checkpoint(str(folder.parent), folder, code) for folder in folders]
    places = [place_of(folder.parent) for folder in folders]
    same = {item for item in places[0].items() if all(item in place.items() for place in places)}
    labels = [
        labelled(name, source, dict(item for item in place.items() if item not in same))
        for source, place in zip(sources, places, strict=True)
    ]
    return sorted(map(Model, labels, sources), key=lambda model: model.label)


def label_of(name: str, source: Source) -> str:
    """ "runs/grid: clip (pairs 0.2, hard_negatives 0.0, seed 0)" for a cell; other names as they are."""
    return labelled(name, source, place_of(source.folder.parent)) if isinstance(source, Checkpoint) else name


def labelled(name: str, source: Checkpoint, place: Mapping[str, Any]) -> str:
    """The label of a cell: its run, its model, and where in its study it is, as far as that is given."""
    where = ", ".join(f"{axis} {value}" for axis, value in place.items())
    return f"{name}: {short_name(source.model)}" + (f" ({where})" if where else "")


def place_of(cell: Path) -> dict[str, Any]:
    """Where in its study a cell is: its axes and its seed, as its result names them; empty for a lone checkpoint."""
    result = finished(cell) or {}
    return {axis: result[axis] for axis in (*result.get("axes", ()), "seed") if axis in result}
