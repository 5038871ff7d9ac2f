"""The options that every study has, and those of studies on splits."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import tyro

from menagerie.envs.core import validation
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.options import DATA, FIRST, MODEL, PLACE, TRAINING, WHAT, markers_of
from menagerie.envs.core.validation import SHARE, SOME_PROCESSES, STEPS, VIEWS, Range, Several
from menagerie.generators.parsers.graph_source import GraphSource
from menagerie.generators.rules.hold_out import test_label
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.runs.command_line import ScorerOptions, scorer_options
from menagerie.studies.runs.data import SplitFile, describe_file
from menagerie.studies.runs.slurm import Cluster

T = TypeVar("T")
GROWS = "grows"
"""Marks an option that may get more values when a folder is continued: it decides which runs there are."""
Axis = Annotated[tuple[T, ...], WHAT, FIRST, GROWS, Several(least=1)]
"""Values that a study varies."""
if TYPE_CHECKING:
    Count = Any  # a study may vary such an option: `views: Axis[int]`
else:
    Count = int


@dataclass(frozen=True)
class AnyOptions:
    """The options of every study, also of one that trains nothing."""

    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be rendered and trained, and how long it takes."""
    out: Annotated[Path | None, PLACE, FIRST] = None
    """Folder of the results; without it, runs/STUDY-PRESET."""
    store: Annotated[Path, PLACE] = Path("store")
    """Folder of atlases and split files, which all studies share."""
    device: Annotated[str, PLACE, FIRST] = "cpu"
    """cpu or cuda."""
    threads: Annotated[int, PLACE, validation.THREADS] = 1
    """Threads of each training run; part of the configuration, because rounding depends on it."""
    workers: Annotated[int, PLACE, FIRST, SOME_PROCESSES] = 0
    """Runs at once; 0 takes one per core, or a single one on cuda. On a cpu results don't depend on it."""
    cluster: Annotated[Cluster, tyro.conf.arg(name=""), PLACE] = field(default_factory=Cluster)
    """Where runs are made; results don't depend on it."""

    @property
    def cores(self) -> int:
        return self.workers or usable_cores()

    @property
    def at_once(self) -> int:
        return self.workers or (1 if self.device.startswith("cuda") else self.cores)

    @classmethod
    def growing(cls) -> frozenset[str]:
        return frozenset(item.name for item in fields(cls) if GROWS in markers_of(cls, item.name))


@dataclass(frozen=True)
class StudyOptions(AnyOptions):
    """The options of every study that trains."""

    models: Annotated[tuple[str, ...], WHAT, FIRST, GROWS, Several(least=1)] = ("clip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own."""
    seeds: Annotated[int, WHAT, FIRST, GROWS, validation.SEEDS] = 1
    """Number of seeds; each decides split and training."""
    first_seed: Annotated[int, WHAT, Range(0, 10**6)] = 0
    """The first seed; the others follow it."""
    scorers: Annotated[ScorerOptions, tyro.conf.arg(name=""), MODEL, validation.PARTS] = field(
        default_factory=partial(scorer_options, "small")
    )
    """Options of each model, by default in the sizes for small towers; only those of chosen models are recorded."""
    loaders: Annotated[int, PLACE, SOME_PROCESSES] = 0
    """Processes that prepare the batches of each run; results don't depend on it. On a GPU a few keep it busy."""
    images_on_gpu: Annotated[float, PLACE, SHARE] = 0.1
    """Share of a GPU's free memory that the training images of each run may take. If they don't fit, or with 0, each
    batch brings its own. Results don't depend on it."""
    log: Annotated[tuple[Literal["tensorboard", "wandb"], ...], PLACE] = ()
    """Loggers of loss, validation and speed besides each run's training.csv: tensorboard, wandb, or both."""
    validate_every: Annotated[int, PLACE, Range(0, STEPS.high)] = 0
    """Steps between two evaluations on validation, which select nothing. 0: a tenth of the run, but at least 100."""
    keep_states: Annotated[tuple[int, ...], PLACE, Range(0, STEPS.high)] = ()
    """Steps after which each run's weights are kept too, as cells/ID/states/STEP; 0: before the first. A run that is
    finished keeps none afterwards: delete its folder to train it again."""
    grad_checkpointing: Annotated[bool, PLACE] = False
    """Compute what lies within transformer blocks twice in a step: less memory, more time, the same results."""

    @property
    def seed_numbers(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


# Fields that don't decide results; a run can be continued with other values.
EXECUTION = frozenset({item.name for item in fields(StudyOptions) if PLACE in markers_of(StudyOptions, item.name)})
EXECUTION = EXECUTION - {"device", "threads"} | {"dry_run"}


@dataclass(frozen=True)
class ModelOptions:
    """Options of training that all models of a study share."""

    tuned: Annotated[str, TRAINING, FIRST] = ""
    """Each model's own towers and rates: a name in studies/recipes, or the best.json of studies/tune.py. `paper`
    takes the rates of each model's paper; empty trains all models alike, with these options."""
    architecture: Annotated[str, MODEL, FIRST] = "micro"
    """Towers: nano, micro, mini, broad, small, or any open_clip architecture such as ViT-B-16."""
    pretrained: Annotated[str, MODEL] = ""
    """open_clip's tag of pretrained weights, or a local FILE of them; FILE@TAG where the architecture's
    weights expect differently prepared images (docs/api.md). Empty trains from scratch."""
    tokenizer: Annotated[str, MODEL] = ""
    """closed or open_clip; empty takes the closed vocabulary for small towers, else the architecture's."""
    recipe: Annotated[Recipe, tyro.conf.arg(name=""), TRAINING] = field(default_factory=Recipe)
    """Training recipe, the same for all models but for `tuned` ones. With pretrained weights each model's paper gives
    learning rates, warm-ups, weight decay and betas in place of these."""


@dataclass(frozen=True)
class SplitOptions(ModelOptions, StudyOptions):
    """The options of a study on splits of one kind in one world."""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    """The recipe of the study's splits. Options of the study replace its fields of the same names."""
    searched: ClassVar[frozenset[str]] = frozenset()
    """Fields of the recipe that the study searches over; a user's recipe doesn't decide them."""

    world: Annotated[str, DATA, FIRST] = "pug"
    """Vocabulary of the scenes: a name, or a TOML file."""
    resolution: Annotated[int, DATA, FIRST, validation.SIDE] = 64
    """Side of the square images, in pixels."""
    views: Annotated[Count, DATA, VIEWS] = 16
    """Views of each training scene."""
    test_views: Annotated[Count, DATA, VIEWS] = 4
    """Views of each test scene, none of them used in training."""
    test_scenes: Annotated[Count, DATA, validation.SCENES] = 400
    """Largest number of scenes in a test subset."""
    template: Annotated[str, DATA] = ""
    """Template of all captions (docs/splits.md); empty takes the recipe's."""
    hold_out: Annotated[tuple[str, ...], DATA, FIRST] = ()
    """Rules such as "texture=red & animal=cat": matches are only in tests. Each rule has a test (docs/splits.md)."""
    split: Annotated[tuple[Path, ...], DATA, FIRST] = ()
    """Split files that exist already, packed ones too. They replace every option that decides a split."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names; None takes the study's own."""
    graph_source: Annotated[GraphSource, tyro.conf.arg(name=""), DATA] = field(default_factory=GraphSource)
    """The graphs that models read, for models that read any."""
    # Chosen on validation, hardest cell of a world of six animals, 4 seeds: without the first phase the few training
    # pairs' fixed textures are memorised before textures themselves are learnt.
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(
        default_factory=lambda: Recipe(steps=2000, single_object_phase=0.5, singles_share=0.95)
    )

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
    """Probability that the caption of a training pair mentions only its bigger animal or, of equal ones, the left."""
    negated: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a training caption also negates an absent object; then negation is tested too."""
