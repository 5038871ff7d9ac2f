"""The options of `studies/photo_transfer.py`, and which of its runs each question compares, on which tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, Range, Several
from menagerie.envs.world import WORLDS
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.sources.cut_outs import FEWEST, SYNTHETIC, VARIED, AnimalPhotographs

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
TESTED_PAIRS, TESTED_OF_FEW = (
    0.2,
    0.4,
)  # shares of animal pairs in tests only; of few animals, which have several photographs


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
class TransferOptions(SplitStudy):
    """The options of the study, and the comparisons that the photographs allow."""

    plain_recipe: ClassVar[BindingRecipe] = BindingRecipe(test_pairs=TESTED_PAIRS)
    decides: ClassVar[tuple[str, ...]] = ("split", "base")

    world: str = "pug"
    """Built-in world of the rendered animals."""
    photos: Annotated[Path | None, DATA, FIRST, GROWS] = None
    """Folder written by `menagerie photos`; empty takes --package."""
    package: Annotated[Path | None, DATA, FIRST, GROWS] = None
    """Folder where the package tuxpaint-stamps-default was unpacked; empty takes the installed one."""
    rehearsal: Annotated[bool, DATA] = False
    """Without --photos and --package, replace photographs by cut-outs of rendered animals, to try the study; its
    numbers then mean nothing."""
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
    """Number of seeds, from 0. Each decides split, training, and which photographs are held out."""
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
        """Whether rendered animals replace photographs."""
        return self.rehearsal and not self.photos and not self.package

    @property
    def there(self) -> AnimalPhotographs:
        """The photographs; raises before `prepare`."""
        assert self.prepared
        return self.prepared.photographs

    @property
    def changeable(self) -> list[str]:
        """The factors that can be changed."""
        more = set(WORLDS[self.world].animals) > self.there.tested.keys()
        possible = {"backgrounds": bool(self.backgrounds), "vocabulary": more}
        return [name for name in self.factors if possible.get(name, True)]

    @property
    def own_counts(self) -> list[int]:
        """The numbers of photographs of each tested animal; one is held out."""
        most = max(map(len, self.there.several.values()), default=1) - 1
        return sorted({min(count, most) for count in self.photographs}) if most else []

    @property
    def other_counts(self) -> list[int]:
        """The numbers of other animals."""
        most = len(self.there.others)
        return sorted({min(count, most) for count in self.other_animals}) if most >= FEWEST else []

    def unanswerable(self) -> list[str]:
        """Return what can't be answered with these photographs, and why."""
        lacking = {*self.factors} - {*self.changeable} if FACTORS in self.parts else set()
        reasons = {
            f"training on photographs of tested animals, for which {FEWEST} animals need two photographs or more": (
                {FINE_TUNING, WORTH} & {*self.parts} and not self.own_counts
            ),
            f"training on photographs of other animals, of which there are fewer than {FEWEST}": (
                FINE_TUNING in self.parts and self.other_animals and not self.other_counts
            ),
            "factor backgrounds; give --backgrounds FOLDER": "backgrounds" in lacking,
            "factor vocabulary; the synthetic world has no other animals": "vocabulary" in lacking,
        }
        return [f"left out: {text}" for text, lacks in reasons.items() if lacks]

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

    def runs_of(self, question: str) -> list[TransferRun]:
        """Return the runs of a question, each once, for all models and seeds."""
        runs = (
            run._replace(seed=seed)
            for seed in range(self.seeds)
            for model in self.models
            for its in self.comparisons(question, model)
            for run in its.runs
        )
        return list(dict.fromkeys(runs))

    @property
    def every_run(self) -> list[TransferRun]:
        """The runs of all questions, each once."""
        return list(dict.fromkeys(run for question in self.parts for run in self.runs_of(question)))
