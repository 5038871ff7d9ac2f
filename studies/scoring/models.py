"""The models of a command line. Each is the source of a scorer; a run of several cells is a model for each cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.trained_on import Training
from menagerie.models.judges.questions import JudgeOptions
from menagerie.models.library.cells import find_training, place_of_cell
from menagerie.models.library.judged import JudgeSource, check_key, find_judges
from menagerie.models.library.load import checkpoint, find_checkpoints, find_source
from menagerie.models.library.sources import Checkpoint, HuggingFace, OpenCLIP, ScorerSource
from menagerie.models.recipe import Recipe
from menagerie.models.registry import is_own, short_name
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.words import explain_model
from menagerie.studies.frame.arm import as_column, label_text
from menagerie.studies.runs.results import read_result


@dataclass(frozen=True)
class Model:
    """A scorer to be evaluated."""

    label: str  # the name in tables
    source: ScorerSource
    run: str = ""  # of a cell; empty for other models
    cell: str = ""
    """The place of a cell in its run, in words: "clip, hard negatives 0%"; the name of a judge without its server."""
    place: tuple[tuple[str, Any], ...] = ()  # the same as axes and their values

    @property
    def title(self) -> str:
        """The label in tables of pages, with a remark if the weights are random."""
        untrained = isinstance(self.source, OpenCLIP) and not self.source.weights
        return f"{self.label}, untrained" if untrained else self.label

    @cached_property
    def training(self) -> Training:
        return find_training(self.source)

    @cached_property
    def weights(self) -> str:
        """Hash of everything that decides the model's scores."""
        return self.source.identity()


def parse_models(
    names: Sequence[str], code: Sequence[str], towers: TowerConfig, judge: JudgeOptions | None = None
) -> list[Model]:
    """Return the models that names stand for. Raises for an unknown name, a model that is given twice, a key that
    several servers would get, and, without `judge`, models that answer questions."""
    for given in code:
        if not is_own(given):
            raise UserError(f"--code {given} is no class of your own; write {given.removesuffix('.py')}.py:CLASS")
    models = [model for name in names for model in models_named(name, code, towers, judge)]
    check_key(judge.key if judge else "", [model.source for model in models])
    labels = [model.label for model in models]
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise UserError(f"the model {again} is given twice")
    return models


def models_named(name: str, code: Sequence[str], towers: TowerConfig, judge: JudgeOptions | None = None) -> list[Model]:
    """Return what a name stands for: a model, a judge for each form of questions, or the cells of a run."""
    if judge and (judges := find_judges(name, judge)):
        return [Model(f"{name} ({one.asked})", one, name, f"{one.model} ({one.asked})") for one in judges]
    folders = find_checkpoints(Path(name)) if Path(name).is_dir() else []
    if len(folders) < 2:
        source = find_source(name, code, towers)
        if isinstance(source, Checkpoint):
            return [cell_model(name, source, place_of_cell(source.folder.parent))]
        return [Model(name, source)]
    places = [place_of_cell(folder.parent) for folder in folders]
    same = {item for item in places[0].items() if all(item in place.items() for place in places)}
    differing = [dict(item for item in place.items() if item not in same) for place in places]
    sources = [checkpoint(str(folder.parent), folder, code) for folder in folders]
    models = [cell_model(name, *both) for both in zip(sources, differing, strict=True)]
    labels = [model.label for model in models]
    for k, source in enumerate(sources):
        if labels.count(labels[k]) > 1:
            models[k] = cell_model(name, source, differing[k] | {"cell": source.folder.parent.name})
    return sorted(models, key=lambda model: model.label)


def cell_model(name: str, source: Checkpoint, place: Mapping[str, Any]) -> Model:
    """Return a cell as a `Model`: its `label` has run, scorer and `place`, its `cell` the same without the run."""
    model, where = short_name(source.model), ", ".join(f"{axis} {value}" for axis, value in place.items())
    words = [f"{axis.replace('_', ' ')} {label_text(axis, as_column(value))}" for axis, value in place.items()]
    label = f"{name}: {model}" + (f" ({where})" if where else "")
    return Model(label, source, name, ", ".join([model, *words]), tuple(place.items()))


def less_seed(model: Model) -> tuple[Model, int]:
    """Return a cell without the seed in its place, so that seeds share a label, and that seed; 0 for other models."""
    place = dict(model.place)
    seed = place.pop("seed", 0)
    same = isinstance(model.source, Checkpoint) and "seed" in dict(model.place)
    return (cell_model(model.run, model.source, place) if same else model), seed


def recorded_world(model: Model) -> str:
    """Return the world in which a study trained a model; empty if none did, or if it isn't recorded."""
    data = training_record(model).get("settings", {}).get("data", {})
    kind = KINDS.get(data.get("kind", ""))
    return data["split"].get("world", kind.world) if kind and "split" in data else ""


def short_labels(models: Sequence[Model]) -> dict[str, str]:
    """Return names for tables, by label: the words of a cell without its run, if these are unique."""
    names = {model.label: model.cell or model.title for model in models}
    return names if len(set(names.values())) == len(names) else {model.label: model.title for model in models}


def training_record(model: Model) -> Mapping[str, Any]:
    """Read the record of the study that trained a model; empty for other models."""
    return (read_result(model.source.folder.parent) or {}) if isinstance(model.source, Checkpoint) else {}


def training_lines(models: Sequence[Model]) -> dict[str, str]:
    """Return, by label, a line on each training by a study: "world tiny, 32 px, pairs 50%; 60 steps of 32 images"."""
    found = {}
    for model, result in ((model, training_record(model)) for model in models):
        if settings := result.get("settings"):
            place = [f"world {world}"] if (world := recorded_world(model)) else []
            place.append(f"{settings.get('towers', {}).get('resolution', TowerConfig.resolution)} px")
            axes = {axis: as_column(result[axis]) for axis in result.get("axes", ()) if axis in result}
            place += [f"{axis.replace('_', ' ')} {label_text(axis, value)}" for axis, value in axes.items()]
            recipe = settings.get("recipe", {})
            steps, batch = recipe.get("steps", Recipe.steps), recipe.get("batch", Recipe.batch)
            found[model.label] = f"{', '.join(place)}; {steps} steps of {batch} images"
    return found


def explain_source(model: Model) -> tuple[str, str]:
    """Return a short name for a model, and a line that explains it."""
    source = model.source
    if isinstance(source, OpenCLIP):
        weights = f"the weights {source.weights}" if source.weights else "random weights: it was never trained"
        return model.title, f"open_clip's {source.architecture} with {weights}"
    if isinstance(source, HuggingFace):
        return model.label, f"a model of Hugging Face's transformers, {source.place}"
    if isinstance(source, JudgeSource):
        return model.label, source.about
    name = source.model if isinstance(source, Checkpoint) else source.name
    return short_name(name), explain_model(name)
