"""Turns training runs into cells: their splits, recipes, starting weights and tests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.library.sources import Checkpoint
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.photographs.data import Tested, TransferData
from menagerie.studies.photographs.trainings import OWN, SPATIAL, SYNTHETIC, Training
from menagerie.studies.photographs.worlds import HELD_OUT, NATURAL, PHOTOGRAPHS, world_name, worlds_tested
from menagerie.studies.runs.cell import CHECKPOINT, Cell, Execution, Job, Start
from menagerie.studies.runs.data import SplitData
from menagerie.studies.runs.results import finished

NAMED = 0.5  # share of training animals whose texture a spatial caption states, so that both ways of it are known
PARTNERS = 4  # animals beside which another animal is shown, on average: all pairs of many would be many images
FEWER = 4  # times: how many views fewer the factor of this name has


@dataclass(frozen=True)
class Jobs:
    """Everything that jobs are made of."""

    config: Any
    worlds: Mapping[str, Path]
    out: Path
    files: Mapping[SplitRecipe, Path]
    stores: Mapping[str, str]
    """Identities of image stores by world."""

    def job(self, training: Training) -> Job | None:
        """The job of a run; None while the run that it starts from isn't finished."""
        start = training.start and self.job(training.start)
        if start is not None and finished(start.folder) is None:
            return None
        cell = self.cell(training, start_of(start) if start else None)
        file = self.files[train_recipe(self.config, training, self.worlds)]
        what = f"{training.factor} changed" if training.factor else ""
        return Job(cell, file, self.out, what, Execution.of(self.config))

    def cell(self, training: Training, start: Start | None) -> Cell:
        recipe = train_recipe(self.config, training, self.worlds)
        train = self.split(world_name(training), recipe)
        data = TransferData(train, called(training), tuple(self.tests(training)), training.images, training.factor)
        cell = cell_of(self.config, training.model, data, recipe.seed)
        return replace(cell, recipe=steps_of(self.config, training, cell.recipe), start=start)

    def tests(self, training: Training) -> list[Tested]:
        """The tests of a run: photographs, and for a run on the synthetic world also rendered images of that."""
        spatial, tests = training.kind == SPATIAL, []
        if training.world == SYNTHETIC:
            base = training._replace(factor="")
            recipe = train_recipe(self.config, base, self.worlds)
            plain = Tested(SYNTHETIC, self.split(SYNTHETIC, recipe), self.files[recipe])
            tests += [plain, *([replace(plain, label=f"{SYNTHETIC}, bare", bare=True)] if spatial else [])]
        for world in (PHOTOGRAPHS, NATURAL) if spatial else worlds_tested(training):
            if world in self.worlds:
                recipe = recipe_tested(self.config, training.kind, training.seed, world, self.worlds)
                label = world.rpartition("-")[0] if world.startswith(HELD_OUT) else world
                tests.append(Tested(label, self.split(world, recipe), self.files[recipe], world == NATURAL))
        return tests

    def split(self, world: str, recipe: SplitRecipe) -> SplitData:
        return SplitData(recipe, self.stores[world])


def called(training: Training) -> str:
    """The name of a run's training data in tables."""
    if training.world == SYNTHETIC:
        return SYNTHETIC
    return f"{training.count} photographs each" if training.world == OWN else f"{training.count} other animals"


def start_of(job: Job) -> Start:
    """The weights of a finished run."""
    folder = job.folder / CHECKPOINT
    weights = Checkpoint(SYNTHETIC, folder, job.cell.model).identity()
    return Start(weights, folder.resolve(), SYNTHETIC, job.cell.images_seen)


def base_recipe(config: Any, kind: str, seed: int) -> SplitRecipe:
    """The recipe of a kind in the synthetic world."""
    pairs, negatives = config.pairs[0], config.hard_negatives[0]
    if kind != SPATIAL:
        return config.split_of(seed, pairs=pairs, hard_negatives=negatives)
    grid = replace(config, base=SpatialRecipe(), views=config.spatial_views)
    return grid.split_of(seed, pairs=pairs, hard_negatives=negatives, attributes=NAMED)


def train_recipe(config: Any, training: Training, worlds: Mapping[str, Path]) -> SplitRecipe:
    """The split that a run is trained on."""
    recipe = replace(base_recipe(config, training.kind, training.seed), world=str(worlds[world_name(training)]))
    if training.factor == "views":
        return replace(recipe, views=max(recipe.views // FEWER, 1))
    if training.world == SYNTHETIC:
        return recipe
    if training.world == OWN:
        return replace(recipe, reserve=config.tuning_reserve)
    share = min(recipe.pairs, PARTNERS / (training.count - 1))
    return replace(recipe, reserve=0.0, pairs=share)  # none of them is tested


def recipe_tested(config: Any, kind: str, seed: int, world: str, worlds: Mapping[str, Path]) -> SplitRecipe:
    """A split whose unseen pairs are tested, and that trains on as little as there can be."""
    reserve = config.tuning_reserve if world.startswith(HELD_OUT) else config.reserve
    recipe = replace(base_recipe(config, kind, seed), world=str(worlds[world]), reserve=reserve)
    return replace(recipe, pairs=0.0, hard_negatives=0.0, singles_views=1)


def steps_of(config: Any, training: Training, recipe: Recipe) -> Recipe:
    """A model's recipe for a run: shorter and slower after synthetic training."""
    if training.factor == "augmentation":
        return replace(recipe, augment=not recipe.augment)
    if not training.tuned:
        return recipe
    rates = ("learning_rate", "vision_learning_rate", "text_learning_rate")
    slower = {name: rate * config.tuning_rate for name in rates if (rate := getattr(recipe, name)) is not None}
    warmup = min(recipe.warmup, config.tuning_steps // 5)
    return replace(recipe, steps=config.tuning_steps, warmup=warmup, single_object_phase=0.0, **slower)


def check_pairs(recipe: SplitRecipe, world: str) -> None:
    """Raise where a run would see single animals only, and say nothing of binding."""
    if not recipe.counts().train:
        raise UserError(
            f"--pairs {recipe.pairs:g} of the {len(load_world(recipe.world).animals)} animals of {world} is no pair at "
            "all; raise it, or give photographs of more animals"
        )


def recipes_of(config: Any, trainings: list[Training], worlds: Mapping[str, Path]) -> dict[str, list[SplitRecipe]]:
    """The recipes of all splits that some runs need, by world."""
    found: dict[str, dict[SplitRecipe, None]] = {}
    for training in trainings:
        base = training._replace(factor="")
        plain = [base] if training.world == SYNTHETIC else []
        for run in (training, *plain):
            recipe = train_recipe(config, run, worlds)
            check_pairs(recipe, world_name(run))
            found.setdefault(world_name(run), {})[recipe] = None
        for world in (PHOTOGRAPHS, NATURAL) if training.kind == SPATIAL else worlds_tested(training):
            if world in worlds:
                found.setdefault(world, {})[recipe_tested(config, training.kind, training.seed, world, worlds)] = None
    return {world: list(recipes) for world, recipes in found.items()}


def rendered(config: Any, trainings: list[Training], worlds: Mapping[str, Path], out: Path) -> Jobs:
    """Render what the stores lack, and write all split files."""
    from menagerie.studies.runs.split_file import make_splits

    files, stores = {}, {}
    for world, recipes in recipes_of(config, trainings, worlds).items():
        store = ImageStore(config.store, load_world(str(worlds[world])), config.resolution)
        files |= make_splits(store, recipes, config.cores)
        stores[world] = store.identity
    return Jobs(config, worlds, out, files, stores)
