"""Synthetic first, then real: how much does training on rendered scenes help on photographs?

Animals cut out of photographs are composed into scenes of the synthetic world, so that the content of an image is known
exactly. Four questions, each with a figure: (zero-shot) how well do models that were trained on rendered animals work
on photographed ones, and is the gap one of recognition or of binding? (fine-tuning) how much do a few photographs help,
from scratch and after synthetic training? (worth) how many real images reach an accuracy, with and without synthetic
training? (factors) what in the synthetic world helps?

    python studies/photo_transfer.py --preset smoke      # rendered cut-outs, under 90 seconds
    python studies/photo_transfer.py                     # Debian's tuxpaint-stamps-default
    python studies/photo_transfer.py --package stamps    # unpacked: dpkg-deb -x FILE.deb stamps
    python studies/photo_transfer.py --photos mine       # menagerie photos mine --cutouts ...

Before training, SHA-256 of the files proves that no photograph of a test is in a training set. Ends with `report.html`,
`results.csv`, a table for each question and per-record predictions in `--out`. Run again, also with further parts,
models, numbers of photographs or of images, it skips what is finished.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, Range
from menagerie.envs.world import WORLDS
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.study import SplitStudy, grid
from menagerie.studies.photographs.trainings import FACTORS, PARTS, SYNTHETIC, Factor, Part, TransferRun, all_runs

if TYPE_CHECKING:
    from menagerie.studies.frame import parts
    from menagerie.studies.frame.records import Records


@dataclass(frozen=True)
class PhotoTransfer(SplitStudy):
    """Synthetic first, then real: what training in a rendered world buys on photographs"""

    plain_recipe: ClassVar[BindingRecipe] = BindingRecipe()

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
    parts: Annotated[Axis[Part], WHAT] = PARTS
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
    prepared: Annotated[Any, tyro.conf.Fixed, tyro.conf.Suppress] = field(default=None, repr=False, compare=False)
    """The photographs, and the worlds in the study's folder, once they are written."""

    @property
    def with_factors(self) -> tuple[str, ...]:
        return self.factor_models or self.models[-1:]

    @property
    def rehearsed(self) -> bool:
        """Whether rendered animals replace photographs."""
        return self.rehearsal and not self.photos and not self.package

    def prepare(self, out: Path) -> "PhotoTransfer":
        """Write the worlds into the study's folder, print the questions that can't be answered, and return the study
        with the worlds."""
        from menagerie.studies.photographs.cells import prepare_worlds

        study = prepare_worlds(self, out)
        for line in study.prepared.left_out:
            print(line, flush=True)
        return study

    def as_recorded(self) -> "PhotoTransfer":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """Plan the runs of all questions. Before `prepare` has read the photographs, plan only the plain runs of each
        model."""
        return self.runs(known).values() if self.prepared else grid(self)

    def runs(self, known: KnownResults) -> dict[TransferRun, Arm]:
        """Map each training to its run. Trainings whose starting weights don't exist yet are left out."""
        from menagerie.studies.photographs.cells import cell_in

        arms: dict[TransferRun, Arm] = {}
        for run in all_runs(self, self.prepared.material):
            start = known.weights(arms[run.start], SYNTHETIC) if run.start else None
            if start or not run.start:
                cell = cell_in(self, run, start)
                arms[run] = Arm(cell, cell.axes)
        return arms

    def page(self, records: "Records") -> Iterable["parts.Part"]:
        """Return the parts of the page: the findings, a figure and a table for each question, and the photographs."""
        from menagerie.studies.pages.photo_transfer import parts
        from menagerie.studies.photographs.answers import Answers

        return parts(Answers(self, records))

    def check_given(self, preset: "PhotoTransfer") -> None:
        if self.base or self.split:
            raise UserError("--recipe and --split can't be used, because this study has its own splits; leave them out")
        super().check_given(preset)

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


PRESETS: dict[str, PhotoTransfer] = {
    "smoke": PhotoTransfer(
        **SMOKE | {"recipe": Recipe(steps=60, batch=32, warmup=5), "pairs": 0.5},
        **{"views": 2, "spatial_views": 1, "seeds": 1, "rehearsal": True, "tuning_steps": 20},
        **{"photographs": (1,), "other_animals": (4,), "images": (16, 64), "targets": (0.55, 0.7)},
        **{"factors": ("augmentation",)},
    ),
    "laptop": PhotoTransfer(
        tuned="laptop", resolution=32, recipe=Recipe(steps=800), views=8, test_views=2, test_scenes=200
    ),
    # For a GPU.
    "large": PhotoTransfer(
        **{"tuned": "laptop", "resolution": 128, "recipe": Recipe(steps=4000), "tuning_steps": 1000, "seeds": 5},
        **{"models": ("clip", "negclip", "oc-clip"), "factor_models": ("clip", "oc-clip"), "loaders": 4},
    ),
}

if __name__ == "__main__":
    main(PRESETS)
