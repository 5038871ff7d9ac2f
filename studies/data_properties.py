"""Which properties of training data help a model to bind, and which hurt?

The factors are those of Gurung, Hoffmann and Brox (GCPR 2025, "Common data properties limit object-attribute binding in
CLIP", arXiv 2507.07985): captions that leave textures or objects out, or mention the salient object alone; more objects
in an image; bigger batches; hard negatives. Each has two levels. All are varied together (a fractional factorial
design), so that every run counts for every factor and each pair of factors. The number of training images is always the
same, and so is that of steps (or, with `--held images`, that of images seen).

    python studies/data_properties.py --preset smoke                       # tiny, a minute on 2 cores
    python studies/data_properties.py                                      # laptop: 8 animals, 32 runs a seed
    python studies/data_properties.py --factors attributes mentioned       # 4 runs a seed
    python studies/data_properties.py --models clip oc-clip --held images  # a bigger batch takes fewer steps

Ends with `report.html`, `results.csv`, `cells.jsonl` and per-record predictions in `--out`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.analysis.factorial import Signs, design
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import EIGHT, SMOKE
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy

OPTIONS = {
    "attributes": "attributes",
    "objects": "most",
    "mentioned": "mentioned",
    "salient": "salient",
    "batch": "batches",
    "hard_negatives": "hard_negatives",
}
"""Map each factor to the option that gives its levels."""


@dataclass(frozen=True)
class DataProperties(SplitStudy):
    """Which properties of data help to bind"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe(objects=(1, 2), test_objects=(2,))
    searched: ClassVar[frozenset[str]] = frozenset(OPTIONS)

    models: tuple[str, ...] = ("clip",)
    """Scorers by name, or FILE.py:Class of your own."""
    factors: Annotated[tuple[str, ...], WHAT, FIRST, Several(1)] = tuple(OPTIONS)
    """Factors to vary; other fields are those of the recipe. Without --recipe captions are complete, and images have
    one or two objects and no hard negatives."""
    attributes: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption includes the texture of an object that it mentions: two levels."""
    most: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2, 4)
    """Largest number of objects in an image; images with each number up to that are equally many. Two levels."""
    mentioned: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption mentions an object; one always is: two levels."""
    salient: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.5)
    """Probability that a caption mentions the salient object alone: two levels."""
    batches: Annotated[tuple[int, ...], TRAINING, FIRST, Several(1), Range(2, 1_000_000)] = (32, 128)
    """Images per step: two levels."""
    hard_negatives: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.4)
    """Share of the training images that are swaps of others, below half: two levels."""
    together: Annotated[bool, TRAINING, FIRST] = True
    """Put an image and its swap into the same batch, if training has both."""
    held: Annotated[Literal["steps", "images"], TRAINING, FIRST] = "steps"
    """What stays the same when the batch changes: the steps, or the number of images seen (--steps times --batch)."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 16_000
    """Number of training images, whatever the number of objects."""
    world: Annotated[str, DATA, FIRST] = "eight-textures"
    """Vocabulary of the scenes, with at least as many animals and textures as a scene has objects."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Accuracy on swaps from which on binding counts as reliable."""

    @property
    def levels(self) -> dict[str, tuple[Any, Any]]:
        """The two values of each factor that is varied, as fields of recipes have them."""
        found = {name: getattr(self, OPTIONS[name]) for name in self.factors}
        return found | {"objects": tuple(map(numbers_up_to, found["objects"]))} if "objects" in found else found

    def check_given(self, preset: AnyStudy) -> None:
        if self.split:
            raise UserError("--split can't be used, because this study varies it; give a --recipe of kind multi-object")
        super().check_given(preset)
        for name, option in OPTIONS.items():
            if name not in self.factors and getattr(self, option) != getattr(preset, option):
                flag = option.replace("_", "-")
                raise UserError(
                    f"--{flag} gives levels of {name}, which isn't among --factors; add it, or leave it out"
                )
        batch = self.recipe.batch != getattr(preset, "recipe", self.recipe).batch
        if batch and "batch" in self.factors and self.held == "steps":
            raise UserError("--batch changes nothing, because the batch is varied; give its levels as --batches")

    def check(self) -> None:
        """Raise for a recipe without tests of two objects, factors without two levels, and levels at which no training
        caption mentions two objects with textures."""
        if not isinstance(self.recipe_given, MultiObjectRecipe) or 2 not in self.recipe_given.test_objects:
            raise UserError(
                "--recipe must be of kind multi-object, with 2 among test_objects, as tests have two objects"
            )
        for name in self.factors:
            choose("factor", name, OPTIONS)
            given = getattr(self, OPTIONS[name])
            if len(given) != 2 or given[0] > given[1]:
                raise UserError(f"{levels_flag(name)} must be two rising levels of {name}, got {given}")
        if 0 in (*self.attributes, *self.mentioned) or 1 in self.salient:
            raise UserError(
                "with --attributes 0, --mentioned 0 or --salient 1 no training caption mentions two objects with "
                "textures, as captions of tests do; give levels in between"
            )

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan each run of the design with every seed and model."""
        for seed in range(self.seeds):
            for signs in design(len(self.factors)):
                for model in self.models:
                    yield design_arm(self, model, seed, signs)

    def place(self, signs: Signs) -> dict[str, Any]:
        """Return the value of every factor in a run of the design. Factors that aren't varied have the recipe's
        value."""
        given = {name: getattr(self.recipe_given, name) for name in OPTIONS if name != "batch"}
        chosen = {name: self.levels[name][sign > 0] for name, sign in zip(self.factors, signs, strict=True)}
        return {**given, "objects": numbers_up_to(max(given["objects"])), "batch": self.recipe.batch} | chosen

    def steps_of(self, batch: int) -> int:
        """Return the number of steps of a run with a batch of this size."""
        if self.held == "steps":
            return self.recipe.steps
        images = self.recipe.steps * self.recipe.batch
        if images % batch:
            raise UserError(
                f"--held images: {images} images (--steps times --batch) aren't a multiple of the batch {batch}"
            )
        return images // batch

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.pages.data_properties import parts

        return parts(records, self.levels, self.enough)


def levels_flag(factor: str) -> str:
    """Return the command-line option of a factor's levels."""
    return f"--{OPTIONS[factor].replace('_', '-')}"


def numbers_up_to(most: int) -> tuple[int, ...]:
    """Return the numbers of objects in images of up to `most` objects."""
    return tuple(range(1, most + 1))


@cache  # the plan is called again after every run
def design_arm(study: DataProperties, model: str, seed: int, signs: Signs) -> Arm:
    place = study.place(signs)
    training = {"steps": study.steps_of(place["batch"])}
    training["image_negatives"] = study.recipe.image_negatives or (study.together and place["hard_negatives"] > 0)
    return study.at(model, seed, **place, **training)._replace(labels=place)


PRESETS = {
    "smoke": DataProperties(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24},
        **{"factors": ("attributes", "batch"), "batches": (16, 32), "train_scenes": 240, "views": 4},
    ),
    # Half of each batch is single-object scenes, whatever the number of objects in the others.
    "laptop": DataProperties(
        **EIGHT | {"world": "eight-textures", "recipe": replace(EIGHT["recipe"], steps=1200, singles_share=0.5)},
        **{"seeds": 3, "train_scenes": 4000},
    ),
}

if __name__ == "__main__":
    main(PRESETS)
