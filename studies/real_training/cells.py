"""The training runs of a study on photographs: every model at every place, with every seed and its starting weights."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.parsers.registry import DEFAULT
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.carry_over import check_start
from menagerie.models.checkpoint import read_config
from menagerie.models.library.cells import place_of
from menagerie.models.library.load import checkpoints_in
from menagerie.models.library.sources import Checkpoint
from menagerie.models.recipe import negatives_of
from menagerie.models.registry import same_scorer, spec_of
from menagerie.models.towers.config import SMALL_TOWERS, TowerConfig
from menagerie.studies.frame.arm import Arm, Known
from menagerie.studies.frame.cells import cell_of, model_options, recipe_line, towers
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.study import grid
from menagerie.studies.real_training.data import RealData
from menagerie.studies.real_training.photographs import Numbers, Opening
from menagerie.studies.runs.cell import Start
from menagerie.studies.runs.results import read_result
from menagerie.studies.scoring.benchmark_piece import PIECES, piece_of
from menagerie.studies.scoring.models import Model

NONE = "none"  # of --from: no trained weights
BENCHMARKS = "benchmarks"  # folder of what cells do on these


class TrainedOn(NamedTuple):
    """What a cell is trained on, beside its seed."""

    sources: str
    parser: str
    mix: float
    start: str


def places(study: Any) -> Iterator[tuple[str, TrainedOn]]:
    """Yield each model with each combination of sources, parser, share of rendered scenes and start, once. A model that
    reads no graphs has the default parser alone."""
    every = (
        (model, place if "graphs" in spec_of(model).reads else place._replace(parser=DEFAULT))
        for place in starmap(TrainedOn, product(study.sources, study.parser, study.mix, study.starts or (NONE,)))
        for model in study.models
    )
    return iter(dict.fromkeys(every))


def grid_of(study: Any) -> Grid:
    """Return a grid of one place, with the study's rendered scenes, towers and recipes."""
    shared = {item.name for item in fields(study)} & {item.name for item in fields(Grid)} - {"base"}
    plain = Grid(**{name: getattr(study, name) for name in shared})
    return plain.with_recipe(replace(study.base or BindingRecipe(), world=study.world))


def start_of(name: str, model: str, seed: int, towers: TowerConfig, options: dict[str, Any]) -> Start | None:
    """Return the start that `--from` names for one model and seed; None for "none". Raises unless it is a checkpoint of
    that model with these towers and options."""
    if name == NONE:
        return None
    folder = checkpoint_of(name, model, seed)
    check_start(folder, model, towers, options)
    weights = Checkpoint(name, folder, model).identity()
    seen = (read_result(folder.parent) or {}).get("images_seen", 0)
    return Start(weights, folder.resolve(), name, seen)


def checkpoint_of(name: str, model: str, seed: int) -> Path:
    """Find the checkpoint of a model in a run, a cell or a checkpoint's folder; if there are several seeds, the one
    with this seed. Raises unless exactly one fits."""
    folders = checkpoints_in(Path(name)) if Path(name).exists() else []
    if not folders:
        raise UserError(f"--from {name}: there is no run, no cell and no checkpoint")
    models = {folder: read_config(folder).model for folder in folders}
    of_model = [folder for folder in folders if same_scorer(models[folder], model)]
    if not of_model:
        there = ", ".join(sorted(set(models.values())))
        raise UserError(f"--from {name}: it has no {model}, only {there}; leave {model} out of --models")
    seeds = {folder: str(place_of(folder.parent).get("seed")) for folder in of_model}
    same = of_model if len({*seeds.values()}) == 1 else [folder for folder in of_model if seeds[folder] == str(seed)]
    if not same:
        there = ", ".join(sorted({*seeds.values()}))
        raise UserError(f"--from {name}: it has no {model} of seed {seed}, only of {there}; lower --seeds")
    if len(same) > 1:
        some = ", ".join(f"{folder.parent} ({described(folder)})" for folder in same[:4])
        raise UserError(
            f"--from {name}: it has {len(same)} cells of {model}; name one of them: {some}{', …' * (len(same) > 4)}"
        )
    return same[0]


def described(folder: Path) -> str:
    """Describe the place of a checkpoint's cell in its study."""
    return ", ".join(f"{axis} {value}" for axis, value in place_of(folder.parent).items()) or "a lone checkpoint"


@dataclass(frozen=True)
class Described:
    """What a plan needs to know of the photographs of some sources with one parser's graphs. For a plan they are read
    only once."""

    photographs: str
    """Identity of the photographs with their captions and graphs."""
    opening: Opening
    numbers: Numbers
    relational: bool


Photos = Mapping[tuple[str, str], Described]
"""The photographs of a study, by their sources and parser."""


def arms_of(study: Any, photos: Photos) -> list[Arm]:
    """Return all runs, seed by seed in the order of the study's places, each once."""
    plain = grid_of(study)
    scenes = [arm for arm in grid(plain, **plain.axes) if arm.cell.model == study.models[0]] if any(study.mix) else []
    every = (
        arm_of(study, photos[place.sources, place.parser], scenes[seed] if place.mix else None, model, place, seed)
        for seed in range(study.seeds)
        for model, place in places(study)
    )
    return list({arm.id: arm for arm in every}.values())


def arm_of(study: Any, there: Described, scenes: Arm | None, model: str, place: TrainedOn, seed: int) -> Arm:
    """Return one run. `scenes` is a run on the rendered scenes that are mixed in, None without any."""
    from menagerie.models.towers.preparation import recorded

    grid = grid_with_steps(study, there.numbers.images)
    data = RealData(
        photographs=there.photographs,
        sources=place.sources,
        parser=place.parser,
        mix=place.mix,
        synthetic=scenes.cell.data if scenes else None,
        opening=there.opening,
        numbers=there.numbers,
        closed=closed(towers(grid, model)),
        relational=there.relational,
    )
    cell = cell_of(grid, model, data, seed)
    if start := start_of(place.start, model, seed, towers(grid, model), model_options(grid, model)):
        as_read = replace(recorded(cell.towers, elsewhere=True), load=False)
        cell = replace(cell, start=start, base=None, towers=as_read)
    return Arm(cell, cell.axes, scenes.file if scenes else there.opening.root)


def grid_with_steps(study: Any, images: int) -> Grid:
    """Return the study's grid, with as many steps as its epochs take with so many photographs."""
    grid = grid_of(study)
    if not study.epochs:
        return grid
    steps = max(1, math.ceil(study.epochs * images / grid.recipe.batch))
    return replace(grid, recipe=replace(grid.recipe, steps=steps))


def closed(config: TowerConfig) -> bool:
    """Whether towers have a closed vocabulary, which only small towers can have."""
    return (config.tokenizer or "closed") == "closed" and config.architecture in SMALL_TOWERS


def recipes(study: Any, photos: Photos) -> dict[str, str]:
    """Describe the recipe of each model, for each set of sources if they take different numbers of steps."""
    images = {sources: described.numbers.images for (sources, _), described in photos.items()}
    several = len(set(images.values())) > 1 and bool(study.epochs)
    lines = {}
    for model in study.models:
        for sources, count in list(images.items()) if several else list(images.items())[:1]:
            name = f"recipe of {model}" + (f" on {sources}" if several else "")
            lines[name] = recipe_line(grid_with_steps(study, count), model)
    return lines


def check_false_captions(arms: Iterable[Arm]) -> None:
    """Raise before training for a model whose loss needs false captions of data that have none."""
    for cell in (arm.cell for arm in arms):
        if negatives_of(cell.recipe, cell.negatives).texts and not cell.data.synthetic:
            raise UserError(
                f"{cell.model} trains with false captions, which photographs don't have; choose another model or "
                "other --text-negatives, or mix rendered scenes in, which have them: --mix 0.5"
            )


def pieces_of(study: Any, arm: Arm, known: Known) -> Iterator[Arm]:
    """Yield an arm for each benchmark, if the cell is finished: its model is scored there, with texts read by the
    cell's own parser."""
    subjects = study.prepared.subjects.get(arm.labels["parser"], ())
    weights = known.weights(arm, arm.cell.name) if subjects else None
    for subject in subjects if weights else ():
        model, skip = model_of(arm.cell.name, weights.folder, arm.cell.model), study.unknown_words == "skip"
        piece = piece_of(model, subject, skip, device=device_for(study.device), below=f"{BENCHMARKS}/{PIECES}")
        yield Arm(piece, {"benchmark": subject.label, "cell": arm.id})


@lru_cache(maxsize=1024)  # its weights are hashed once
def model_of(name: str, folder: Path, scorer: str) -> Model:
    """Return the scorer of a cell as a model to be scored."""
    return Model(name, Checkpoint(name, folder, scorer))


def device_for(device: str) -> str:
    """Return the device on which pieces are scored: that of training, or "cpu" if this is cuda and isn't here."""
    import torch

    there = not device.startswith("cuda") or torch.cuda.is_available()  # cells may be trained elsewhere
    return device if there else "cpu"
