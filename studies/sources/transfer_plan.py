"""The cells of `studies/photo_transfer.py`: the splits that runs train on and are tested on, and the worlds of
photographs that these need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import split_name
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.runs.cell import Cell, Start
from menagerie.studies.runs.data import SplitData
from menagerie.studies.sources.cut_outs import (
    SYNTHETIC,
    VARIED,
    AnimalPhotographs,
    Files,
    check_no_shared_files,
    draw_pictures,
    read_cutouts,
    write_cutout_world,
    write_rendered_worlds,
)
from menagerie.studies.sources.transfer_data import TestedSplit, TransferData
from menagerie.studies.sources.transfer_options import (
    BARE,
    HELD_OUT,
    NATURAL,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    TESTED_OF_FEW,
    TESTED_PAIRS,
    Prepared,
    TransferOptions,
    TransferRun,
)

PACKAGE_SIDE = 224  # pixels: the largest scenes for which the package's photographs are large enough
NAMED = 0.5  # share of animals whose texture a spatial training caption states: models know captions of both kinds
BESIDE = 4  # animals that each animal is paired with, on average: all pairs of many animals would be too many images
SLOWER = 0.3  # peak learning rate after synthetic training, as a share of that from scratch
FEWER = 4  # the factor `views` divides the number of views by it


@dataclass(frozen=True)
class TransferPlan(TransferOptions):
    """The cells of all runs, with the worlds that they need."""

    def cell_in(self, run: TransferRun, start: Start | None = None) -> Cell:
        """Return the cell of a run, which begins with the weights of `start`, if any."""
        recipe = self.train_recipe(run)
        train, tested = self.split_in(recipe), tuple(self.tests_of(run))
        data = TransferData(train, run.data_name, tested, run.images, run.factor)
        cell = cell_of(self, run.model, data, recipe.seed)
        return replace(cell, recipe=self.training_of(run, cell.recipe), start=start)

    def tests_of(self, run: TransferRun) -> Iterator[TestedSplit]:
        """Yield a run's tests: photographs and, if it trains on a synthetic world, images of the unchanged one."""
        if run.world == SYNTHETIC:
            plain = self.train_recipe(run._replace(factor=""))
            yield self.tested_split(SYNTHETIC, plain)
            if run.kind == SPATIAL:
                yield self.tested_split(BARE, plain, bare=True)
        for world in (name for name in run.worlds_tested if name in self.prepared.worlds):
            # Only its unseen pairs are used: it trains on as little as possible.
            held_out = world.startswith(HELD_OUT)
            recipe = replace(
                self.recipe_in(run, world),
                test_pairs=TESTED_OF_FEW if held_out else TESTED_PAIRS,
                **{"pairs": 0.0, "singles_views": 1},
            )
            yield self.tested_split(HELD_OUT if held_out else world, recipe, bare=world == NATURAL)

    def tested_split(self, label: str, recipe: SplitRecipe, bare: bool = False) -> TestedSplit:
        folder = store_of(self.store, recipe.world, self.resolution).folder
        return TestedSplit(label, self.split_in(recipe), folder / split_name(recipe), bare)

    def split_in(self, recipe: SplitRecipe) -> SplitData:
        return SplitData(recipe, store_of(self.store, recipe.world, self.resolution).identity)

    def recipe_in(self, run: TransferRun, world: str) -> SplitRecipe:
        """Return the split recipe of a run's kind, in a world of the study."""
        place = {"world": str(self.prepared.worlds[world])}
        if run.kind != SPATIAL:
            return self.split_of(run.seed, **place)
        spatial = replace(self, base=SpatialRecipe(test_pairs=TESTED_PAIRS), views=self.spatial_views)
        return spatial.split_of(run.seed, attributes=NAMED, **place)

    def train_recipe(self, run: TransferRun) -> SplitRecipe:
        """Return the recipe of the split that a run is trained on."""
        recipe = self.recipe_in(run, run.world_name)
        if run.factor == "views":
            return replace(recipe, views=max(recipe.views // FEWER, 1))
        if run.world == SYNTHETIC:
            return recipe
        if run.world == OWN:
            return replace(recipe, test_pairs=TESTED_OF_FEW)
        share = min(recipe.pairs, BESIDE / (run.count - 1))
        return replace(recipe, test_pairs=0.0, pairs=share)  # none of them is tested

    def training_of(self, run: TransferRun, recipe: Recipe) -> Recipe:
        """Return the training recipe of a run: after synthetic training it has fewer steps and lower rates."""
        if run.factor == "augmentation":
            return replace(recipe, augment=not recipe.augment)
        if not run.tuned:
            return recipe
        rates = ("learning_rate", "vision_learning_rate", "text_learning_rate")
        slower = {name: rate * SLOWER for name in rates if (rate := getattr(recipe, name)) is not None}
        warmup = min(recipe.warmup, self.tuning_steps // 5)
        return replace(recipe, steps=self.tuning_steps, warmup=warmup, single_object_phase=0.0, **slower)

    def read_photographs(self, folder: Path) -> AnimalPhotographs:
        """Read the photographs of `--photos`; without it, first write the package's or a rehearsal's to `folder`."""
        synthetic = load_world(self.world)
        if self.photos:
            return read_cutouts(self.photos, synthetic)
        from menagerie.envs.custom import photos

        if self.rehearsed:
            pictures = draw_pictures(synthetic, folder / "pictures")
            photos.run(photos.Config(folder, cutouts=pictures, resolution=self.resolution))
        else:
            photos.run(photos.Config(folder, self.package, resolution=max(self.resolution, PACKAGE_SIDE)))
        return read_cutouts(folder, synthetic)

    def photo_worlds(self) -> Iterator[tuple[str, Files]]:
        """Yield the name of each world of photographs, and its files by animal."""
        there = self.there
        yield from ((PHOTOGRAPHS, there.tested), (NATURAL, there.tested))
        for seed in range(self.seeds) if there.several else ():
            yield f"{HELD_OUT}-{seed}", {name: held_out_file(files, seed) for name, files in there.several.items()}
        for name, run in {run.world_name: run for run in self.every_run if run.world != SYNTHETIC}.items():
            if run.world == OWN:
                several = there.several.items()
                yield name, {animal: training_files(files, run.seed, run.count) for animal, files in several}
            else:
                yield name, {animal: there.others[animal] for animal in draw_animals(there, run.seed, run.count)}

    def with_worlds(self, out: Path) -> "TransferPlan":
        """Write the worlds into `out`, and return the study with them. Raises if the photographs are too few for any
        run, or if one is both trained on and tested."""
        photographs, folder = self.read_photographs(out / "photos"), out / "worlds"
        study = replace(self, prepared=Prepared(photographs, {}))
        if not study.every_run:
            raise UserError("; ".join(["nothing is left to train", *study.unanswerable()]))
        chosen = dict(study.photo_worlds())
        for name, files in chosen.items():
            write_cutout_world(folder / f"{name}.toml", self.world, files, name == NATURAL)
        write_rendered_worlds(folder, self.world, sorted(photographs.tested), self.backgrounds)
        trained = {run.world_name: run for run in study.every_run if run.world != SYNTHETIC}
        for name, run in trained.items():
            for test in chosen.keys() & {*run.worlds_tested}:
                check_no_shared_files(folder / f"{name}.toml", folder / f"{test}.toml")
        names = (*chosen, SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED))
        return replace(self, prepared=Prepared(photographs, {name: folder / f"{name}.toml" for name in names}))


@cache
def store_of(root: Path, world: str, resolution: int) -> SplitFolder:
    """Return the folder of a world's splits; nothing is rendered here."""
    return SplitFolder(root, load_world(world), resolution)


def held_out_file(files: Sequence[Path], seed: int) -> tuple[Path, ...]:
    """Return the one photograph of an animal that is tested with a seed."""
    return (files[seed % len(files)],)


def training_files(files: Sequence[Path], seed: int, count: int) -> tuple[Path, ...]:
    """Return `count` photographs of an animal, or fewer, without the held-out one; more contain fewer."""
    place = seed % len(files)
    return tuple([*files[place + 1 :], *files[:place]][:count])


def draw_animals(photographs: AnimalPhotographs, seed: int, count: int) -> list[str]:
    """Choose up to `count` of the other animals at random, by a seed. A larger choice contains the smaller ones."""
    names = sorted(photographs.others)
    return sorted(names[k] for k in generator(seed, "other animals").permutation(len(names))[:count])
