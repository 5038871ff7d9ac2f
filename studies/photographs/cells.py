"""The photographs of a study, and the cells of its training runs: their splits, recipes and tests."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import split_name
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.photographs.data import TestedSplit, TransferData
from menagerie.studies.photographs.trainings import (
    FACTORS_PART,
    FEWEST,
    FINE_TUNING,
    HELD_OUT,
    NATURAL,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    SYNTHETIC,
    WORTH,
    AnimalPhotographs,
    PhotographCounts,
    TransferRun,
    all_runs,
    count_photographs,
    world_name,
    worlds_tested,
)
from menagerie.studies.photographs.worlds import CommonFiles, Worlds, photographs_of, shared_photographs, write_worlds
from menagerie.studies.runs.cell import Cell, Start
from menagerie.studies.runs.data import SplitData

NAMED = (
    0.5  # share of training animals whose texture a spatial caption states, so that models know captions of both kinds
)
BESIDE = 4  # animals that each animal is paired with, on average: all pairs of many animals would be too many images
FEWER = 4  # the factor `views` divides the number of views by it


class PreparedWorlds(NamedTuple):
    """The photographs of a study, and the worlds that it has written."""

    photographs: AnimalPhotographs
    worlds: Worlds
    material: PhotographCounts
    audit: list[CommonFiles]
    left_out: list[str]
    """The questions that can't be answered, and why."""


def prepare_worlds(study: Any, out: Path) -> Any:
    """Write the worlds of a study into `out`, and return the study with them. Raises if the photographs are too few for
    any run, or leave a run without pairs of animals."""
    photographs = photographs_of(study, out / "photos")
    worlds, material = write_worlds(study, photographs, out / "worlds"), count_photographs(study, photographs)
    lacking = unanswerable(study, photographs, material)
    runs = all_runs(study, material)
    if not runs:
        raise UserError("; ".join(["nothing is left to train", *lacking]))
    audit = shared_photographs(study, material, worlds)
    study = replace(study, prepared=PreparedWorlds(photographs, worlds, material, audit, lacking))
    for run in runs:
        check_any_pair(study, run)
    return study


def unanswerable(study: Any, photographs: AnimalPhotographs, material: PhotographCounts) -> list[str]:
    """Return which questions can't be answered with these photographs, and why."""
    lines = []
    if {FINE_TUNING, WORTH} & {*study.parts} and not photographs.several:
        lines.append(
            f"left out: training on photographs of tested animals, for which {FEWEST} animals need two photographs or "
            "more"
        )
    if FINE_TUNING in study.parts and not material.others:
        lines.append(f"left out: training on photographs of other animals, of which there are fewer than {FEWEST}")
    reasons = {"backgrounds": "give --backgrounds FOLDER", "vocabulary": "the synthetic world has no other animals"}
    lacking = [name for name in study.factors if name not in material.factors and FACTORS_PART in study.parts]
    return lines + [f"left out: factor {name}; {reasons[name]}" for name in lacking]


def cell_in(study: Any, training: TransferRun, start: Start | None = None) -> Cell:
    """Return the cell of a run, which begins with the weights of `start`, if any."""
    recipe = train_recipe(study, training)
    data = TransferData(
        train=split_in(study, recipe),
        world=data_name(training),
        tested=tuple(tests_of_run(study, training)),
        images=training.images,
        factor=training.factor,
    )
    cell = cell_of(study, training.model, data, recipe.seed)
    return replace(cell, recipe=run_recipe(study, training, cell.recipe), start=start)


def tests_of_run(study: Any, training: TransferRun) -> list[TestedSplit]:
    """Return a run's tests: photographs and, if it trains on a synthetic world, images of the unchanged one."""
    spatial, tests = training.kind == SPATIAL, []
    if training.world == SYNTHETIC:
        plain = tested_split(study, SYNTHETIC, train_recipe(study, training._replace(factor="")))
        tests += [plain, *([replace(plain, label=f"{SYNTHETIC}, bare", bare=True)] if spatial else [])]
    for world in (PHOTOGRAPHS, NATURAL) if spatial else worlds_tested(training):
        if world in study.prepared.worlds:
            label = HELD_OUT if world.startswith(HELD_OUT) else world
            recipe = recipe_tested(study, training.kind, training.seed, world)
            tests.append(replace(tested_split(study, label, recipe), bare=world == NATURAL))
    return tests


def tested_split(study: Any, label: str, recipe: SplitRecipe) -> TestedSplit:
    store = store_of(study.store, recipe.world, study.resolution)
    return TestedSplit(label, SplitData(recipe, store.identity), store.folder / split_name(recipe))


def split_in(study: Any, recipe: SplitRecipe) -> SplitData:
    return SplitData(recipe, store_of(study.store, recipe.world, study.resolution).identity)


@cache
def store_of(root: Path, world: str, resolution: int) -> SplitFolder:
    """Return the folder of a world's splits; nothing is rendered here."""
    return SplitFolder(root, load_world(world), resolution)


def data_name(training: TransferRun) -> str:
    """Return the name of a run's training data in tables."""
    if training.world == SYNTHETIC:
        return SYNTHETIC
    return f"{training.count} photographs each" if training.world == OWN else f"{training.count} other animals"


def base_recipe(study: Any, kind: str, seed: int) -> SplitRecipe:
    """Return the split recipe of a kind, in the study's own world."""
    if kind != SPATIAL:
        return study.split_of(seed)
    return replace(study, base=SpatialRecipe(), views=study.spatial_views).split_of(seed, attributes=NAMED)


def train_recipe(study: Any, training: TransferRun) -> SplitRecipe:
    """Return the recipe of the split that a run is trained on."""
    recipe = replace(
        base_recipe(study, training.kind, training.seed), world=str(study.prepared.worlds[world_name(training)])
    )
    if training.factor == "views":
        return replace(recipe, views=max(recipe.views // FEWER, 1))
    if training.world == SYNTHETIC:
        return recipe
    if training.world == OWN:
        return replace(recipe, test_pairs=study.tuning_test_pairs)
    share = min(recipe.pairs, BESIDE / (training.count - 1))
    return replace(recipe, test_pairs=0.0, pairs=share)  # none of them is tested


def recipe_tested(study: Any, kind: str, seed: int, world: str) -> SplitRecipe:
    """Return the recipe of a split of which only unseen pairs are used: it trains on as little as possible."""
    test_pairs = study.tuning_test_pairs if world.startswith(HELD_OUT) else study.test_pairs
    recipe = replace(base_recipe(study, kind, seed), world=str(study.prepared.worlds[world]), test_pairs=test_pairs)
    return replace(recipe, pairs=0.0, hard_negatives=0.0, singles_views=1)


def run_recipe(study: Any, training: TransferRun, recipe: Recipe) -> Recipe:
    """Return the training recipe of a run: after synthetic training it has fewer steps and lower rates."""
    if training.factor == "augmentation":
        return replace(recipe, augment=not recipe.augment)
    if not training.tuned:
        return recipe
    rates = ("learning_rate", "vision_learning_rate", "text_learning_rate")
    slower = {name: rate * study.tuning_rate for name in rates if (rate := getattr(recipe, name)) is not None}
    warmup = min(recipe.warmup, study.tuning_steps // 5)
    return replace(recipe, steps=study.tuning_steps, warmup=warmup, single_object_phase=0.0, **slower)


def check_any_pair(study: Any, training: TransferRun) -> None:
    """Raise if a run would train on single animals only, which says nothing about binding."""
    recipe = train_recipe(study, training)
    if not recipe.counts().train:
        raise UserError(
            f"--pairs {recipe.pairs:g} of the {len(load_world(recipe.world).animals)} animals of "
            f"{world_name(training)} makes no pair; raise it, or give photographs of more animals"
        )
