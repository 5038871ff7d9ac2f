"""Which models `studies/photo_transfer.py` trains, on which of the photographs, and where it tests them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
    draw_pictures,
    read_cutouts,
    shared_photographs,
    write_cutout_world,
    write_rendered_worlds,
)
from menagerie.studies.sources.transfer_data import TestedSplit, TransferData
from menagerie.studies.sources.transfer_options import (
    FACTORS_PART,
    FINE_TUNING,
    WORTH,
    ZERO_SHOT,
    Prepared,
    TransferOptions,
)

BINDING, SPATIAL = "binding", "spatial"
OWN, OTHERS = "own", "others"
PHOTOGRAPHS, NATURAL, HELD_OUT = "photographs", "natural", "held-out"  # worlds of tests
PACKAGE_SIDE = 224  # pixels: the largest scenes for which the package's photographs are large enough
NAMED = 0.5  # share of animals whose texture a spatial training caption states: models know captions of both kinds
BESIDE = 4  # animals that each animal is paired with, on average: all pairs of many animals would be too many images
FEWER = 4  # the factor `views` divides the number of views by it


class TransferRun(NamedTuple):
    """A training run."""

    model: str
    seed: int
    kind: str = BINDING
    world: str = SYNTHETIC
    """What the run is trained on: rendered animals, or photographs of the tested or of other animals."""
    count: int = 0
    """Photographs of each tested animal, or number of other animals."""
    images: int = 0
    """Number of distinct images, drawn from all; 0: all."""
    tuned: bool = False
    """Whether the run starts from the weights of the synthetic run of its model and seed."""
    factor: str = ""
    """The factor that is changed in the synthetic world."""

    @property
    def start(self) -> "TransferRun | None":
        """The run whose weights this one starts from; None if it starts from scratch."""
        return TransferRun(self.model, self.seed, self.kind) if self.tuned else None

    @property
    def world_name(self) -> str:
        """The name of the world that the run is trained on."""
        if self.world == SYNTHETIC:
            return f"{SYNTHETIC}-{self.factor}" if self.factor in VARIED else SYNTHETIC
        return f"{self.world}-{self.count}-{self.seed}"

    @property
    def data_name(self) -> str:
        """The name of the training data in tables."""
        if self.world == SYNTHETIC:
            return SYNTHETIC
        return f"{self.count} photographs each" if self.world == OWN else f"{self.count} other animals"

    @property
    def worlds_tested(self) -> tuple[str, ...]:
        """The worlds of photographs that the run is tested on."""
        if self.kind == SPATIAL:
            return (PHOTOGRAPHS, NATURAL)
        return (*[PHOTOGRAPHS] * (self.world != OWN), f"{HELD_OUT}-{self.seed}")


@dataclass(frozen=True)
class TransferPlan(TransferOptions):
    """The runs that follow from the options and the photographs."""

    def runs_of(self, question: str) -> Iterator[TransferRun]:
        """Yield the runs of a question, for all models and seeds; none if it can't be answered. Those on photographs of
        other animals don't start from scratch, because these don't teach the tested animals' names."""
        for plain in (TransferRun(model, seed) for seed in range(self.seeds) for model in self.models):
            own = [plain._replace(world=OWN, count=n) for n in self.own_counts]
            others = [plain._replace(world=OTHERS, count=n, tuned=True) for n in self.other_counts]
            changed = self.changeable if plain.model in (self.factor_models or self.models[-1:]) else ()
            more = {
                ZERO_SHOT: [plain._replace(kind=SPATIAL)],
                FINE_TUNING: [*own, *(run._replace(tuned=True) for run in own), *others],
                WORTH: [
                    r._replace(images=n, tuned=tuned) for r in own[-1:] for n in self.images for tuned in (False, True)
                ],
                FACTORS_PART: [plain._replace(factor=name) for name in changed],
            }[question]
            yield from (plain, *more) if more else ()

    @property
    def every_run(self) -> list[TransferRun]:
        """The runs of all questions, each once."""
        return list(dict.fromkeys(run for question in self.parts for run in self.runs_of(question)))

    def cell_in(self, run: TransferRun, start: Start | None = None) -> Cell:
        """Return the cell of a run, which begins with the weights of `start`, if any."""
        recipe = self.train_recipe(run)
        train, tested = self.split_in(recipe), tuple(self.tests_of(run))
        data = TransferData(train, run.data_name, tested, run.images, run.factor)
        cell = cell_of(self, run.model, data, recipe.seed)
        return replace(cell, recipe=self.training_of(run, cell.recipe), start=start)

    def tests_of(self, run: TransferRun) -> list[TestedSplit]:
        """Return a run's tests: photographs and, if it trains on a synthetic world, images of the unchanged one."""
        tests = []
        if run.world == SYNTHETIC:
            plain = self.tested_split(SYNTHETIC, self.train_recipe(run._replace(factor="")))
            tests += [plain, *[replace(plain, label=f"{SYNTHETIC}, bare", bare=True)] * (run.kind == SPATIAL)]
        for world in (name for name in run.worlds_tested if name in self.ready.worlds):
            label = HELD_OUT if world.startswith(HELD_OUT) else world
            test = self.tested_split(label, self.recipe_tested(run, world))
            tests.append(replace(test, bare=world == NATURAL))
        return tests

    def tested_split(self, label: str, recipe: SplitRecipe) -> TestedSplit:
        folder = store_of(self.store, recipe.world, self.resolution).folder
        return TestedSplit(label, self.split_in(recipe), folder / split_name(recipe))

    def split_in(self, recipe: SplitRecipe) -> SplitData:
        return SplitData(recipe, store_of(self.store, recipe.world, self.resolution).identity)

    def recipe_in(self, run: TransferRun, world: str) -> SplitRecipe:
        """Return the split recipe of a run's kind, in a world of the study."""
        place = {"world": str(self.ready.worlds[world])}
        if run.kind != SPATIAL:
            return self.split_of(run.seed, **place)
        spatial = replace(self, base=SpatialRecipe(), views=self.spatial_views)
        return spatial.split_of(run.seed, attributes=NAMED, **place)

    def train_recipe(self, run: TransferRun) -> SplitRecipe:
        """Return the recipe of the split that a run is trained on."""
        recipe = self.recipe_in(run, run.world_name)
        if run.factor == "views":
            return replace(recipe, views=max(recipe.views // FEWER, 1))
        if run.world == SYNTHETIC:
            return recipe
        if run.world == OWN:
            return replace(recipe, test_pairs=self.tuning_test_pairs)
        share = min(recipe.pairs, BESIDE / (run.count - 1))
        return replace(recipe, test_pairs=0.0, pairs=share)  # none of them is tested

    def recipe_tested(self, run: TransferRun, world: str) -> SplitRecipe:
        """Return the recipe of a split of which only unseen pairs are used: it trains on as little as possible."""
        test_pairs = self.tuning_test_pairs if world.startswith(HELD_OUT) else self.test_pairs
        recipe = replace(self.recipe_in(run, world), test_pairs=test_pairs)
        return replace(recipe, pairs=0.0, hard_negatives=0.0, singles_views=1)

    def training_of(self, run: TransferRun, recipe: Recipe) -> Recipe:
        """Return the training recipe of a run: after synthetic training it has fewer steps and lower rates."""
        if run.factor == "augmentation":
            return replace(recipe, augment=not recipe.augment)
        if not run.tuned:
            return recipe
        rates = ("learning_rate", "vision_learning_rate", "text_learning_rate")
        slower = {name: rate * self.tuning_rate for name in rates if (rate := getattr(recipe, name)) is not None}
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
        there = self.ready.photographs
        yield from ((PHOTOGRAPHS, there.tested), (NATURAL, there.tested))
        for seed in range(self.seeds) if there.several else ():
            yield f"{HELD_OUT}-{seed}", {name: held_out_file(files, seed) for name, files in there.several.items()}
        for run in dict.fromkeys(run._replace(model="", images=0, tuned=False) for run in self.every_run):
            if run.world == OWN:
                several = there.several.items()
                yield run.world_name, {name: training_files(files, run.seed, run.count) for name, files in several}
            elif run.world == OTHERS:
                yield run.world_name, {name: there.others[name] for name in draw_animals(there, run.seed, run.count)}

    def with_worlds(self, out: Path) -> "TransferPlan":
        """Write the worlds into `out`, and return the study with them. Raises if the photographs are too few for any
        run, or leave a run without pairs of animals, or if one is both trained on and tested."""
        photographs, folder = self.read_photographs(out / "photos"), out / "worlds"
        study = replace(self, prepared=Prepared(photographs, {}, ()))
        if not study.every_run:
            raise UserError("; ".join(["nothing is left to train", *study.unanswerable()]))
        chosen = dict(study.photo_worlds())
        for name, files in chosen.items():
            write_cutout_world(folder / f"{name}.toml", self.world, files, name == NATURAL)
        write_rendered_worlds(folder, self.world, sorted(photographs.tested), self.backgrounds)
        names = (*chosen, SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED))
        worlds = {name: folder / f"{name}.toml" for name in names}
        trained = (run for run in study.every_run if run.world != SYNTHETIC)
        pairs = ((run.world_name, test) for run in trained for test in run.worlds_tested if test in worlds)
        study = replace(self, prepared=Prepared(photographs, worlds, shared_photographs(pairs, folder)))
        for recipe, name in {study.train_recipe(run): run.world_name for run in study.every_run}.items():
            check_any_pair(recipe, name)
        return study


@cache
def store_of(root: Path, world: str, resolution: int) -> SplitFolder:
    """Return the folder of a world's splits; nothing is rendered here."""
    return SplitFolder(root, load_world(world), resolution)


def check_any_pair(recipe: SplitRecipe, world: str) -> None:
    """Raise if a recipe trains on single animals only, which says nothing about binding."""
    if not recipe.counts().train:
        raise UserError(
            f"--pairs {recipe.pairs:g} of the {len(load_world(recipe.world).animals)} animals of {world} makes no "
            "pair; raise it, or give photographs of more animals"
        )


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
