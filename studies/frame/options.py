"""The options that every study has, and those of studies on splits."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import tyro

from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT, Part, markers_of
from menagerie.envs.core.validation import SCENES, SEEDS, SHARE, SIDE, VIEWS, Several
from menagerie.generators.parsers.graph_source import GraphSource
from menagerie.generators.rules.hold_out import test_label
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.runs.command_line import ModelOptions, PlaceOptions, RunOptions, ScorersOption
from menagerie.studies.runs.split_file import SplitFile, describe_file

T = TypeVar("T")


class Growing:
    """Marker of an option that may get more values when a folder is continued. Such an option decides which runs there
    are, but not their results."""


GROWS = Growing()
Axis = Annotated[tuple[T, ...], WHAT, FIRST, GROWS, Several(least=1)]
"""Values that a study varies."""
if TYPE_CHECKING:
    Count = Any  # a study may vary such an option: `views: Axis[int]`
else:
    Count = int


@dataclass(frozen=True)
class AnyOptions(PlaceOptions):
    """The options of every study, also of one that trains nothing."""

    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be rendered and trained, and how long it takes."""

    @classmethod
    def growing(cls) -> frozenset[str]:
        """The options that may have more values when a folder is continued."""
        return frozenset(item.name for item in fields(cls) if GROWS in markers_of(cls, item.name))


@dataclass(frozen=True)
class StudyOptions(ScorersOption, RunOptions, AnyOptions):
    """The options of every study that trains."""

    models: Annotated[tuple[str, ...], WHAT, FIRST, GROWS, Several(least=1)] = ("clip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own."""
    seeds: Annotated[int, WHAT, FIRST, GROWS, SEEDS] = 1
    """Number of seeds, from 0; each decides split and training."""


@dataclass(frozen=True)
class SplitOptions(ModelOptions, StudyOptions):
    """The options of a study on splits of one kind in one world."""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    """The recipe of the study's splits. Options of the study replace its fields of the same names."""
    searched: ClassVar[frozenset[str]] = frozenset()
    """Fields of the recipe that the study searches over; a user's recipe doesn't decide them."""
    varies_split: ClassVar[bool] = False
    """Whether the study varies the split itself, so that no file can take its place."""

    world: Annotated[str, DATA, FIRST] = "pug"
    """Vocabulary of the scenes: a name, or a TOML file."""
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    views: Annotated[Count, DATA, VIEWS] = 16
    """Views of each training scene."""
    test_views: Annotated[Count, DATA, VIEWS] = 4
    """Views of each test scene, none of them used in training."""
    test_scenes: Annotated[Count, DATA, SCENES] = 400
    """Largest number of scenes in a test subset."""
    template: Annotated[str, DATA] = ""
    """Template of all captions (docs/splits.md); empty takes the recipe's."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": matches are only in tests. Each rule has a test of its own
    (docs/splits.md)."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """Split files that exist already, packed ones too. They replace every option that decides a split."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names; None takes the study's own."""
    graph_source: Annotated[GraphSource, tyro.conf.arg(name=""), DATA] = field(default_factory=GraphSource)
    """The graphs that models read, for models that read any."""
    recipe: Annotated[Recipe, tyro.conf.arg(name=""), TRAINING, Part("training")] = field(
        # Chosen on validation, hardest cell of a world of six animals, 4 seeds: without the first phase
        # the few training pairs' fixed textures are memorised before textures themselves are learnt.
        default_factory=lambda: Recipe(steps=2000, single_object_phase=0.5, singles_share=0.95)
    )
    """Training recipe, the same for all models but for `tuned` ones. With pretrained weights each model's paper gives
    learning rates, warm-ups, weight decay and betas in place of these."""

    @property
    def recipe_given(self) -> SplitRecipe:
        """The user's recipe, or the study's own."""
        return self.base or self.plain_recipe

    @cached_property
    def files(self) -> dict[SplitFile, Path]:
        """The split files that were given, opened once."""
        return {describe_file(file, len(self.split) > 1): file for file in self.split}

    @property
    def kind(self) -> str:
        return next(iter(self.files)).kind if self.split else self.recipe_given.kind

    def label(self, test: str) -> str:
        """Return the name of a test for people, with its hold-out rule if it has one."""
        rules = {data.hold_out for data in self.files} if self.split else {self.hold_out}
        return test_label(test, rules.pop()) if len(rules) == 1 else test  # several files may have several of one name

    def split_of(self, seed: int, **place: Any) -> SplitRecipe:
        given = self.recipe_given
        values = {item.name: getattr(self, item.name) for item in fields(given) if hasattr(self, item.name)}
        if not self.template:
            values["template"] = given.template
        return replace(given, **values | place | {"seed": given.seed + seed})


@dataclass(frozen=True)
class CaptionOptions:
    """What the captions of a binding split leave out, and what they add."""

    mentioned: Annotated[float, DATA, SHARE] = 1.0
    """Probability that an animal of a training pair is mentioned in its caption; one always is."""
    attributes: Annotated[float, DATA, SHARE] = 1.0
    """Probability that a training caption includes the texture of an animal that it mentions."""
    salient: Annotated[float, DATA, SHARE] = 0.0
    """Probability that the caption of a training pair mentions only its salient animal, whatever `mentioned` is: the
    bigger one, or the left one if both have one size."""
    negated: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a training caption also negates an absent object: "and no white caribou"; then negation is
    tested too."""
