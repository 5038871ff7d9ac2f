"""The options of `studies/photo_transfer.py`, the runs that each question compares, and their cells: the splits that
runs train on and are tested on, and the worlds of photographs that these need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, Range, Several
from menagerie.envs.world import WORLDS
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import split_name
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.cell import Cell, Start
from menagerie.studies.runs.data import SplitData
from menagerie.studies.sources.transfer_data import (
    FEWEST,
    SYNTHETIC,
    VARIED,
    AnimalPhotographs,
    Files,
    TestedSplit,
    TransferData,
    check_no_shared_files,
    read_photographs,
    write_cutout_world,
    write_rendered_worlds,
)

Question = Literal["zero-shot", "fine-tuning", "worth", "factors"]
Factor = Literal["views", "textures", "augmentation", "backgrounds", "vocabulary"]
ZERO_SHOT, FINE_TUNING, WORTH, FACTORS = get_args(Question)
BINDING, SPATIAL = "binding", "spatial"
OWN, OTHERS = "own", "others"
PHOTOGRAPHS, NATURAL, HELD_OUT = "photographs", "natural", "held-out"  # worlds of tests
BARE = f"{SYNTHETIC}, bare"
# Kind of split, tests of rendered and of photographed animals, and what their captions say.
TESTS = (
    (BINDING, SYNTHETIC, PHOTOGRAPHS, "in the world's textures"),
    (SPATIAL, SYNTHETIC, PHOTOGRAPHS, "in the world's textures"),
    (SPATIAL, BARE, NATURAL, "in their own colours"),
)
TESTED = {HELD_OUT: "held-out photographs", PHOTOGRAPHS: "all photographs", SYNTHETIC: "rendered animals"}
TESTED_PAIRS, TESTED_OF_FEW = 0.2, 0.4  # shares of animal pairs in tests only; of animals with several photographs
NAMED = 0.5  # share of animals whose texture a spatial training caption states: models know captions of both kinds
BESIDE = 4  # animals that each animal is paired with, on average: all pairs of many animals would be too many images
SLOWER = 0.3  # peak learning rate after synthetic training, as a share of that from scratch
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
        if self.world == SYNTHETIC:
            return f"{SYNTHETIC}-{self.factor}" if self.factor in VARIED else SYNTHETIC
        return f"{self.world}-{self.count}-{self.seed}"

    @property
    def data_name(self) -> str:
        if self.world == SYNTHETIC:
            return SYNTHETIC
        return f"{self.count} photographs each" if self.world == OWN else f"{self.count} other animals"

    @property
    def worlds_tested(self) -> tuple[str, ...]:
        if self.kind == SPATIAL:
            return (PHOTOGRAPHS, NATURAL)
        return (*[PHOTOGRAPHS] * (self.world != OWN), f"{HELD_OUT}-{self.seed}")


Side = tuple[TransferRun, str]
"""A run, and the label of one of its tests."""


class ComparedRuns(NamedTuple):
    """Two sides that a question compares."""

    setting: str | int
    tested: str
    first: Side | None
    """None: there is no such run."""
    second: Side
    others: tuple[TransferRun, ...] = ()
    """Runs whose animal pairs neither side may have in its test, besides those of the two sides."""

    @property
    def runs(self) -> list[TransferRun]:
        return [side[0] for side in (self.first, self.second) if side]


class Prepared(NamedTuple):
    """The photographs of a study, and the files of the worlds that it has written, by their names."""

    photographs: AnimalPhotographs
    worlds: Mapping[str, Path]


@dataclass(frozen=True)
class TransferPlan(SplitStudy):
    """The options of the study, the comparisons that the photographs allow, and the cells of all runs."""

    plain_recipe: ClassVar[BindingRecipe] = BindingRecipe(test_pairs=TESTED_PAIRS)
    decides: ClassVar[tuple[str, ...]] = ("split", "base")

    world: str = "pug"
    """Built-in world of the rendered animals."""
    photos: Annotated[Path | None, DATA, FIRST, GROWS] = None
    """Folder written by `menagerie photos`; empty takes --package."""
    package: Annotated[Path | None, DATA, FIRST, GROWS] = None
    """Folder where the package tuxpaint-stamps-default was unpacked; empty takes the installed one."""
    rehearsal: Annotated[bool, DATA] = False
    """Without --photos and --package, try the study with cut-outs of rendered animals; its numbers mean nothing."""
    backgrounds: Annotated[Path | None, DATA, GROWS] = None
    """Folder of photographs of scenery for the factor `backgrounds`, as in `menagerie photos`."""
    parts: Annotated[Axis[Question], WHAT] = (ZERO_SHOT, FINE_TUNING, WORTH, FACTORS)
    """Questions: zero-shot, fine-tuning, worth, factors."""
    photographs: Annotated[tuple[int, ...], WHAT, GROWS, Range(1, 1000), Several(least=1)] = (1, 2)
    """Numbers of photographs of each animal for fine-tuning; the test has other photographs."""
    other_animals: Annotated[tuple[int, ...], WHAT, GROWS, Range(3, 1000)] = (8, 24, 88)
    """Numbers of other animals whose photographs are fine-tuned on instead; at most as many as there are."""
    images: Annotated[tuple[int, ...], WHAT, GROWS, Range(2, 1_000_000), Several(least=1)] = (32, 128, 512, 2048)
    """Numbers of distinct images of photographs to train on, to find how many reach a target."""
    targets: Annotated[tuple[float, ...], WHAT, GROWS, Range(0.5, 1.0)] = (0.7, 0.8, 0.9)
    """Accuracies to be reached, above chance, 0.5."""
    factors: Annotated[tuple[Factor, ...], WHAT, GROWS] = get_args(Factor)
    """Changes of the synthetic world: views, textures, augmentation, backgrounds, vocabulary."""
    factor_models: Annotated[tuple[str, ...], WHAT, GROWS] = ()
    """Models among --models that are trained with each factor; empty takes the last model."""
    tuning_steps: Annotated[int, TRAINING, Range(1, 1_000_000)] = 150
    """Steps on photographs after synthetic training; from scratch there are --steps."""
    spatial_views: Annotated[int, DATA, Range(1, 10_000)] = 2
    """Views of each synthetic training scene of the spatial split, which has many more scenes."""
    pairs: Annotated[float, DATA, SHARE] = 0.5
    """Fraction of the trainable animal pairs in training."""
    seeds: int = 3
    """Number of seeds. Each decides split, training, and which photographs are held out."""
    prepared: Annotated[Prepared | None, tyro.conf.Fixed, tyro.conf.Suppress] = field(
        default=None, repr=False, compare=False
    )
    """The photographs, and the worlds in the study's folder, once they are written."""

    def check(self) -> None:
        choose("built-in world for --world, which has the same animals rendered,", self.world, WORLDS)
        for model in self.factor_models:
            choose("value of --factor-models", model, self.models)
        if self.backgrounds and not self.backgrounds.is_dir():
            raise UserError(f"--backgrounds {self.backgrounds} is not a folder; give one with photographs of scenery")

    @property
    def rehearsed(self) -> bool:
        return self.rehearsal and not self.photos and not self.package

    @property
    def changeable(self) -> list[str]:
        more = set(WORLDS[self.world].animals) > self.prepared.photographs.tested.keys()
        possible = {"backgrounds": bool(self.backgrounds), "vocabulary": more}
        return [name for name in self.factors if possible.get(name, True)]

    @property
    def own_counts(self) -> list[int]:
        """The numbers of photographs of each tested animal; one is held out."""
        most = max(map(len, self.prepared.photographs.several.values()), default=1) - 1
        return sorted({min(count, most) for count in self.photographs}) if most else []

    @property
    def other_counts(self) -> list[int]:
        most = len(self.prepared.photographs.others)
        return sorted({min(count, most) for count in self.other_animals}) if most >= FEWEST else []

    def unanswerable(self) -> list[str]:
        """Return what can't be answered, for want of photographs."""
        questions = [question for question in self.parts if not self.runs_of(question)]
        factors = [name for name in self.factors if FACTORS in self.parts and name not in self.changeable]
        lacking = [*questions, *(f"factor {name}" for name in factors)]
        if FINE_TUNING in self.parts:
            lacking += [f"{FINE_TUNING} on photographs of tested animals"] * (not self.own_counts)
            lacking += [f"{FINE_TUNING} on photographs of other animals"] * (not self.other_counts)
        return [f"left out: {what}: there are too few photographs for it" for what in lacking]

    def comparisons(self, question: str, model: str) -> Iterator[ComparedRuns]:
        """Yield what a question compares for a model, by runs of seed 0; nothing if it can't be answered."""
        base = TransferRun(model, 0)
        own = [base._replace(world=OWN, count=count) for count in self.own_counts]
        if question == ZERO_SHOT:
            for kind, rendered, photographed, said in TESTS:
                run = base._replace(kind=kind)
                yield ComparedRuns(kind, said, (run, rendered), (run, photographed))
        elif question == FINE_TUNING:
            yield from self.tuning_comparisons(base, own)
        elif question == WORTH and own:
            tested, whole = TESTED[HELD_OUT], own[-1]
            yield ComparedRuns(0, tested, None, (base, HELD_OUT), (whole,))
            for run in (whole._replace(images=number) for number in sorted(self.images)):
                yield ComparedRuns(run.images, tested, (run, HELD_OUT), (run._replace(tuned=True), HELD_OUT), (base,))
        elif question == FACTORS and model in (self.factor_models or self.models[-1:]):
            for factor in self.changeable:
                for test in (PHOTOGRAPHS, SYNTHETIC):
                    yield ComparedRuns(factor, TESTED[test], (base, test), (base._replace(factor=factor), test))

    def tuning_comparisons(self, base: TransferRun, own: Sequence[TransferRun]) -> Iterator[ComparedRuns]:
        """Yield training from scratch and after synthetic training, on more and more photographs. Runs on photographs
        of other animals don't start from scratch, because these don't teach the tested animals' names."""
        others = [base._replace(world=OTHERS, count=count, tuned=True) for count in self.other_counts]
        for test in [*[HELD_OUT] * bool(own), *[PHOTOGRAPHS] * bool(others)]:
            shown = (base, *own[:1]) if test == HELD_OUT else (base,)  # all of `own` show the same pairs
            yield ComparedRuns("none", TESTED[test], None, (base, test), shown)
            for run in own if test == HELD_OUT else ():
                name = f"{run.count} of each animal"
                yield ComparedRuns(name, TESTED[test], (run, test), (run._replace(tuned=True), test), shown)
            for run in others:
                yield ComparedRuns(f"of {run.count} other animals", TESTED[test], None, (run, test), shown)

    def runs_of(self, *questions: str) -> list[TransferRun]:
        """Return the runs of questions, each once, for all models and seeds."""
        runs = (
            run._replace(seed=seed)
            for question in questions
            for seed in self.seed_numbers
            for model in self.models
            for its in self.comparisons(question, model)
            for run in its.runs
        )
        return list(dict.fromkeys(runs))

    def cell_in(self, run: TransferRun, start: Start | None = None) -> Cell:
        """Return the cell of a run, which begins with the weights of `start`, if any."""
        recipe = self.train_recipe(run)
        data = TransferData(self.split_in(recipe), run.data_name, tuple(self.tests_of(run)), run.images, run.factor)
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
            held_out = world.startswith(HELD_OUT)
            # Only its unseen pairs are used: it trains on as little as possible.
            few = {"test_pairs": TESTED_OF_FEW if held_out else TESTED_PAIRS, "pairs": 0.0, "singles_views": 1}
            recipe = replace(self.recipe_in(run, world), **few)
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
        recipe = self.recipe_in(run, run.world_name)
        if run.factor == "views":
            return replace(recipe, views=max(recipe.views // FEWER, 1))
        if run.world == SYNTHETIC:
            return recipe
        if run.world == OWN:
            return replace(recipe, test_pairs=TESTED_OF_FEW)
        return replace(recipe, test_pairs=0.0, pairs=min(recipe.pairs, BESIDE / (run.count - 1)))  # none is tested

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

    def photo_worlds(self, trained: Mapping[str, TransferRun]) -> Iterator[tuple[str, Files]]:
        """Yield the name of each world of photographs, tested or `trained` on, and its files by animal."""
        there = self.prepared.photographs
        yield from ((PHOTOGRAPHS, there.tested), (NATURAL, there.tested))
        for seed in self.seed_numbers if there.several else ():
            yield f"{HELD_OUT}-{seed}", there.held_out(seed)
        for name, run in trained.items():
            yield name, there.own(run.seed, run.count) if run.world == OWN else there.drawn(run.seed, run.count)

    def with_worlds(self, out: Path) -> "TransferPlan":
        """Write the worlds into `out`, and return the study with them. Raises if the photographs are too few for any
        run, or if one is both trained on and tested."""
        photographs = read_photographs(self, out / "photos")
        folder = out / "worlds"
        study = replace(self, prepared=Prepared(photographs, {}))
        if not (every := study.runs_of(*self.parts)):
            raise UserError("; ".join(["nothing is left to train", *study.unanswerable()]))
        trained = {run.world_name: run for run in every if run.world != SYNTHETIC}
        chosen = dict(study.photo_worlds(trained))
        for name, files in chosen.items():
            write_cutout_world(folder / f"{name}.toml", self.world, files, name == NATURAL)
        write_rendered_worlds(folder, self.world, sorted(photographs.tested), self.backgrounds)
        for name, run in trained.items():
            for test in chosen.keys() & {*run.worlds_tested}:
                check_no_shared_files(folder / f"{name}.toml", folder / f"{test}.toml")
        names = (*chosen, SYNTHETIC, *(f"{SYNTHETIC}-{factor}" for factor in VARIED))
        return replace(self, prepared=Prepared(photographs, {name: folder / f"{name}.toml" for name in names}))


@cache
def store_of(root: Path, world: str, resolution: int) -> SplitFolder:
    """Return the folder of a world's splits; nothing is rendered here."""
    return SplitFolder(root, load_world(world), resolution)
