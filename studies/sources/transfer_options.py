"""The options of `studies/photo_transfer.py`, and what the photographs allow of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, Range
from menagerie.envs.world import WORLDS
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.sources.cut_outs import FEWEST, AnimalPhotographs, CommonFiles

Question = Literal["zero-shot", "fine-tuning", "worth", "factors"]
Factor = Literal["views", "textures", "augmentation", "backgrounds", "vocabulary"]
ZERO_SHOT, FINE_TUNING, WORTH, FACTORS_PART = QUESTIONS = get_args(Question)
FACTORS: tuple[Factor, ...] = get_args(Factor)


class Prepared(NamedTuple):
    """The photographs of a study, and the worlds that it has written."""

    photographs: AnimalPhotographs
    worlds: Mapping[str, Path]
    """The files of the worlds by their names."""
    audit: Sequence[CommonFiles]


@dataclass(frozen=True)
class TransferOptions(SplitStudy):
    """The options of the study, and the runs that follow from them."""

    plain_recipe: ClassVar[BindingRecipe] = BindingRecipe()
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
    parts: Annotated[Axis[Question], WHAT] = QUESTIONS
    """Questions: zero-shot, fine-tuning, worth, factors."""
    photographs: Annotated[tuple[int, ...], WHAT, GROWS, Range(1, 1000)] = (1, 2)
    """Numbers of photographs of each animal for fine-tuning; the test has other photographs."""
    other_animals: Annotated[tuple[int, ...], WHAT, GROWS, Range(3, 1000)] = (8, 24, 88)
    """Numbers of other animals whose photographs are fine-tuned on instead; at most as many as there are."""
    images: Annotated[tuple[int, ...], WHAT, GROWS, Range(2, 1_000_000)] = (32, 128, 512, 2048)
    """Numbers of distinct images of photographs to train on, rising, to find how many reach a target."""
    targets: Annotated[tuple[float, ...], WHAT, GROWS] = (0.7, 0.8, 0.9)
    """Accuracies to be reached, above chance, 0.5."""
    factors: Annotated[tuple[Factor, ...], WHAT, GROWS] = FACTORS
    """Changes of the synthetic world: views, textures, augmentation, backgrounds, vocabulary."""
    factor_models: Annotated[tuple[str, ...], WHAT, GROWS] = ()
    """Models among --models that are trained with each factor; empty takes the last model."""
    tuning_steps: Annotated[int, TRAINING, Range(1, 1_000_000)] = 150
    """Steps on photographs after synthetic training; from scratch there are --steps."""
    tuning_rate: Annotated[float, TRAINING, Range(0.001, 10.0)] = 0.3
    """Peak learning rate after synthetic training, as a share of that from scratch."""
    spatial_views: Annotated[int, DATA, Range(1, 10_000)] = 2
    """Views of each synthetic training scene of the spatial split, which has many more scenes."""
    test_pairs: Annotated[float, DATA, SHARE] = 0.2
    """Share of all animal pairs that are only in tests."""
    tuning_test_pairs: Annotated[float, DATA, SHARE] = 0.4
    """The same share among the few animals that have several photographs."""
    validation: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs for validation curves, which select nothing."""
    pairs: Annotated[float, DATA, SHARE] = 0.5
    """Fraction of the trainable animal pairs in training."""
    hard_negatives: Annotated[float, DATA, SHARE] = 0.0
    """Fraction of these pairs that have hard negatives too."""
    seeds: int = 3
    """Number of seeds, from 0. Each decides split, training, and which photographs are held out."""
    prepared: Annotated[Prepared | None, tyro.conf.Fixed, tyro.conf.Suppress] = field(
        default=None, repr=False, compare=False
    )
    """The photographs, and the worlds in the study's folder, once they are written."""

    @property
    def ready(self) -> Prepared:
        """What was prepared; raises before `prepare`."""
        assert self.prepared
        return self.prepared

    @property
    def rehearsed(self) -> bool:
        """Whether rendered animals replace photographs."""
        return self.rehearsal and not self.photos and not self.package

    @property
    def changeable(self) -> list[str]:
        """The factors that can be changed."""
        more = set(WORLDS[self.world].animals) > self.ready.photographs.tested.keys()
        possible = {"backgrounds": bool(self.backgrounds), "vocabulary": more}
        return [name for name in self.factors if possible.get(name, True)]

    @property
    def own_counts(self) -> list[int]:
        """The numbers of photographs of each tested animal; one is held out."""
        most = max(map(len, self.ready.photographs.several.values()), default=1) - 1
        return limit_counts(self.photographs, most)

    @property
    def other_counts(self) -> list[int]:
        """The numbers of other animals."""
        there = len(self.ready.photographs.others)
        return limit_counts(self.other_animals, there if there >= FEWEST else 0)

    def unanswerable(self) -> list[str]:
        """Return which questions can't be answered with these photographs, and why."""
        lines = []
        if {FINE_TUNING, WORTH} & {*self.parts} and not self.own_counts:
            lines.append(
                f"left out: training on photographs of tested animals, for which {FEWEST} animals need two photographs "
                "or more"
            )
        if FINE_TUNING in self.parts and not self.other_counts:
            lines.append(f"left out: training on photographs of other animals, of which there are fewer than {FEWEST}")
        reasons = {"backgrounds": "give --backgrounds FOLDER", "vocabulary": "the synthetic world has no other animals"}
        lacking = [name for name in self.factors if name not in self.changeable and FACTORS_PART in self.parts]
        return lines + [f"left out: factor {name}; {reasons[name]}" for name in lacking]

    def check(self) -> None:
        super().check()
        choose("built-in world for --world, which has the same animals rendered,", self.world, WORLDS)
        for model in self.factor_models:
            choose("value of --factor-models", model, self.models)
        for name in ("photographs", "other_animals", "images", "targets"):
            values = getattr(self, name)
            if list(values) != sorted(set(values)) or (not values and name in ("photographs", "images")):
                raise UserError(f"--{name.replace('_', '-')} needs different values in rising order, got {values}")
        if not all(0.5 < target <= 1 for target in self.targets):
            raise UserError(f"--targets are above chance, 0.5, and at most 1; got {self.targets}")
        if self.backgrounds and not self.backgrounds.is_dir():
            raise UserError(f"--backgrounds {self.backgrounds} is not a folder; give one with photographs of scenery")
        if self.photos and self.package:
            raise UserError("--photos replaces --package; leave one of them out")


def limit_counts(wanted: Sequence[int], most: int) -> list[int]:
    """Return the wanted numbers, at most `most` each, without repeats; empty if `most` is 0."""
    return list(dict.fromkeys(min(count, most) for count in wanted)) if most else []
