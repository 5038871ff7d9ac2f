"""The training runs of a study on photographs: every model at every place, with every seed and its starting weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.models.carry_over import check_carry_over
from menagerie.models.checkpoint import scorer_config
from menagerie.models.library.cells import place_of_cell
from menagerie.models.library.load import find_checkpoints
from menagerie.models.library.sources import Checkpoint
from menagerie.models.recipe import negatives_of
from menagerie.models.registry import same_scorer
from menagerie.models.towers.config import SMALL_TOWERS, TowerConfig
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import cell_of, model_options, recipe_line, towers
from menagerie.studies.frame.study import grid
from menagerie.studies.runs.cell import Start
from menagerie.studies.runs.results import read_result
from menagerie.studies.scoring.benchmark_piece import PIECES, Subject, benchmark_piece
from menagerie.studies.scoring.models import Model
from menagerie.studies.sources.photograph_data import RealData
from menagerie.studies.sources.photograph_options import NONE, PhotographStudy, TrainedOn

BENCHMARKS = "benchmarks"  # folder of the cells' results on benchmarks


def start_of(name: str, model: str, seed: int, towers: TowerConfig, options: dict[str, Any]) -> Start | None:
    """Return the starting weights that `--from` names for a model and seed; None for "none". Raises unless they are a
    checkpoint of that model with these towers and options."""
    if name == NONE:
        return None
    folder = checkpoint_of(name, model, seed)
    check_carry_over(folder, model, towers, options)
    weights = Checkpoint(name, folder, model).identity()
    seen = (read_result(folder.parent) or {}).get("images_seen", 0)
    return Start(weights, folder.resolve(), name, seen)


def checkpoint_of(name: str, model: str, seed: int) -> Path:
    """Return the checkpoint of a model, and of this seed if there are several. Raises unless exactly one fits."""
    folders = find_checkpoints(Path(name)) if Path(name).exists() else []
    if not folders:
        raise UserError(f"--from {name}: there is no run, no cell and no checkpoint")
    models = {folder: scorer_config(folder).model for folder in folders}
    of_model = [folder for folder in folders if same_scorer(models[folder], model)]
    if not of_model:
        there = ", ".join(sorted(set(models.values())))
        raise UserError(f"--from {name}: it has no {model}, only {there}; leave {model} out of --models")
    seeds = {folder: str(place_of_cell(folder.parent).get("seed")) for folder in of_model}
    same = of_model if len({*seeds.values()}) == 1 else [folder for folder in of_model if seeds[folder] == str(seed)]
    if not same:
        there = ", ".join(sorted({*seeds.values()}))
        raise UserError(f"--from {name}: it has no {model} of seed {seed}, only of {there}; lower --seeds")
    if len(same) > 1:
        some = ", ".join(f"{folder.parent} ({cell_place_text(folder)})" for folder in same[:4])
        raise UserError(
            f"--from {name}: it has {len(same)} cells of {model}; name one of them: {some}{', …' * (len(same) > 4)}"
        )
    return same[0]


def cell_place_text(folder: Path) -> str:
    """Describe the place of a checkpoint's cell in its study."""
    return ", ".join(f"{axis} {value}" for axis, value in place_of_cell(folder.parent).items()) or "a lone checkpoint"


Photos = Mapping[tuple[str, str], RealData]
"""The photographs of a study without rendered scenes, by their sources and parser. They are read once."""


def arms_of(study: PhotographStudy, photos: Photos) -> list[Arm]:
    """Return all runs, each once: seed by seed, and for each seed in the order of the study's places."""
    plain = study.plain_grid()
    scenes = [arm for arm in grid(plain, **plain.axes) if arm.cell.model == study.models[0]] if any(study.mix) else []
    every = (
        arm_of(study, photos[place.sources, place.parser], scenes[seed] if place.mix else None, model, place, seed)
        for seed in range(study.seeds)
        for model, place in study.training_places()
    )
    return list({arm.id: arm for arm in every}.values())


def arm_of(study: PhotographStudy, there: RealData, scenes: Arm | None, model: str, place: TrainedOn, seed: int) -> Arm:
    """Return a run. `scenes` is a run on the rendered scenes that are mixed in; None if none are."""
    from menagerie.models.towers.preparation import towers_to_record

    grid = study.plain_grid(there.numbers.images)
    closed = has_closed_vocabulary(towers(grid, model))
    data = replace(there, mix=place.mix, synthetic=scenes.cell.data if scenes else None, closed=closed)
    cell = cell_of(grid, model, data, seed)
    if start := start_of(place.start, model, seed, towers(grid, model), model_options(grid, model)):
        as_read = replace(towers_to_record(cell.towers, elsewhere=True), load=False)
        cell = replace(cell, start=start, base=None, towers=as_read)
    return Arm(cell, cell.axes, scenes.file if scenes else there.opening.root)


def has_closed_vocabulary(config: TowerConfig) -> bool:
    """Return whether towers have a closed vocabulary, which only small towers can have."""
    return (config.tokenizer or "closed") == "closed" and config.architecture in SMALL_TOWERS


def recipe_lines(study: PhotographStudy, photos: Photos) -> dict[str, str]:
    """Describe the recipe of each model, for each set of sources if they take different numbers of steps."""
    images = {sources: described.numbers.images for (sources, _), described in photos.items()}
    several = len(set(images.values())) > 1 and bool(study.epochs)
    lines = {}
    for model in study.models:
        for sources, count in list(images.items()) if several else list(images.items())[:1]:
            name = f"recipe of {model}" + (f" on {sources}" if several else "")
            lines[name] = recipe_line(study.plain_grid(count), model)
    return lines


def check_false_captions(arms: Iterable[Arm]) -> None:
    """Raise for a model whose loss needs false captions of data that have none, before anything is trained."""
    for cell in (arm.cell for arm in arms):
        if negatives_of(cell.recipe, cell.negatives).texts and not cell.data.synthetic:
            raise UserError(
                f"{cell.model} trains with false captions, which photographs don't have; choose another model or "
                "other --text-negatives, or mix rendered scenes in, which have them: --mix 0.5"
            )


def benchmark_arms(study: PhotographStudy, subjects: Sequence[Subject], arm: Arm, known: KnownResults) -> Iterator[Arm]:
    """Yield an arm for each benchmark, whose texts have graphs of the cell's parser, if the cell is finished."""
    weights = known.weights(arm, arm.cell.name) if subjects else None
    for subject in subjects if weights else ():
        model, skip = model_of_cell(arm.cell.name, weights.folder, arm.cell.model), study.unknown_words == "skip"
        piece = benchmark_piece(model, subject, skip, device=device_for(study.device), below=f"{BENCHMARKS}/{PIECES}")
        yield Arm(piece, {"benchmark": subject.label, "cell": arm.id})


@lru_cache(maxsize=1024)  # weights are hashed once
def model_of_cell(name: str, folder: Path, scorer: str) -> Model:
    """Return the scorer of a cell as a model to evaluate."""
    return Model(name, Checkpoint(name, folder, scorer))


def device_for(device: str) -> str:
    """Return the device on which pieces are scored: that of training, or "cpu" if this is cuda and isn't here."""
    import torch

    there = not device.startswith("cuda") or torch.cuda.is_available()  # cells may be trained elsewhere
    return device if there else "cpu"
