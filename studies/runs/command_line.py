"""Command lines of studies: presets by name, overrides by field, and the options of all scorers."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import tyro

from menagerie.envs.core.command_help import read_options, running_command
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import changed_fields
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.options import DATA, FIRST, MODEL, PLACE, TRAINING, Option, Part
from menagerie.envs.core.validation import PARTS, SHARE, SOME_PROCESSES, STEPS, THREADS, Range
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.cluster.jobs import Cluster

if TYPE_CHECKING:
    from menagerie.generators.splits.recipe import SplitRecipe

Config = TypeVar("Config")


def runs_to_compare() -> tuple[Path, Path] | None:
    """Return the two folders after `--compare`, or None without this option. Raise if it isn't the only one."""
    if "--compare" not in sys.argv[1:]:
        return None
    if len(sys.argv) != 4 or sys.argv[1] != "--compare":
        raise UserError("write --compare RUN_A RUN_B, two folders of finished runs and nothing else")
    return Path(sys.argv[2]), Path(sys.argv[3])


COMPARE = Option("--compare RUN_A RUN_B", "How run B differs from run A, record by record; without other options.")
RECIPE = Option("--recipe NAME", "Splits of a recipe: one of `menagerie recipes`, or a TOML file.", group=DATA)


def parse_study(
    presets: Mapping[str, Config], default: str, description: str, more: Iterable[Option] = ()
) -> tuple[str, Config]:
    """Parse the command line: returns the preset's name, and its configuration with the given fields overridden.

    Help also lists `more` (options that other functions read) and, where they apply, `--preset` and `--recipe`.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.set_defaults(recipe=None)
    first.add_argument("--preset", default=default)
    name = choose("preset", first.parse_known_args(sys.argv[1:])[0].preset, presets)
    if takes_recipes := hasattr(presets[name], "with_recipe"):
        first.add_argument("--recipe")
    chosen, rest = first.parse_known_args(sys.argv[1:])
    preset = given = with_chosen_scorers(presets[name], rest)
    if chosen.recipe:
        from menagerie.generators.splits.recipe_file import read_recipe

        preset = given.with_recipe(recipe := read_recipe(chosen.recipe))
    listed = ", ".join(f"{name} (default)" if name == default else name for name in presets)
    starts = Option("--preset NAME", f"Where the other options start: {listed}.")
    shown = (*[starts] * (len(presets) > 1), *more, *[RECIPE] * takes_recipes)
    config = read_options(type(preset), rest, running_command(), description, preset, shown)
    if chosen.recipe and (changed := left_to_defaults(recipe, given, config)):
        print(f"--recipe {chosen.recipe} has the defaults of {recipe.kind} splits in place of the preset's: {changed}")
    return chosen.preset, config


def left_to_defaults(recipe: "SplitRecipe", preset: object, config: object) -> str:
    """List the options for which a recipe has the default of its kind, with the preset's values where these differ."""

    def text(value: object) -> str:
        return (" ".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)

    silent = [
        item.name for item in fields(recipe) if hasattr(preset, item.name) and item.name not in changed_fields(recipe)
    ]
    return ", ".join(
        f"{name} {text(now)} ({text(before)})"
        for name in silent
        if (now := getattr(config, name)) != (before := getattr(preset, name))
        and now in (value := getattr(recipe, name), (value,))
    )


@dataclass(frozen=True)
class ScorerOptions:
    """The options of the chosen models, in a field for each, named by the model's flag (`oc_clip`). Other models have
    the defaults of a size: paper, small or smoke."""

    models: ClassVar[tuple[str, ...]] = ()
    """Name of the scorer for each field, registered or file.py:Class."""
    size: ClassVar[str] = "paper"

    def config(self, model: str) -> Any:
        """Return all options of a model."""
        spec = spec_of(model)
        return getattr(self, spec.flag) if model in self.models else config_of_size(spec, self.size)

    def of(self, model: str) -> dict[str, Any]:
        """Return the options of a model that differ from its paper's."""
        return changed_fields(self.config(model))

    def replace_options(self, model: str, options: Mapping[str, Any]) -> "ScorerOptions":
        """Return these options with some options of a model changed."""
        both = only_models(self, dict.fromkeys((*self.models, model)))
        return replace(both, **{spec_of(model).flag: replace(self.config(model), **options)})

    def __reduce__(self) -> tuple[Any, ...]:
        configs = [getattr(self, item.name) for item in fields(self)]
        # As plain values, because another process must import a user's file before it can unpickle its config.
        values = tuple({item.name: getattr(one, item.name) for item in fields(one)} for one in configs)
        return restore_options, (self.size, self.models, values)


@cache
def options_class(size: str, models: tuple[str, ...]) -> type[ScorerOptions]:
    """Return the class with a field for each of `models`. Raise if a user's class has the flag of another scorer."""
    owner = {spec.flag: name for name, spec in specs().items()}
    for model in models:
        if (first := owner.setdefault(spec_of(model).flag, model)) != model:
            raise UserError(f"the options of {first} and {model} would both be --{spec_of(model).name}.…; rename one")
    chosen = map(spec_of, models)
    items = [(spec.flag, spec.config, field(default=config_of_size(spec, size))) for spec in chosen]
    kind = make_dataclass("ScorerOptions", items, bases=(ScorerOptions,), frozen=True)
    kind.models, kind.size, kind.__module__ = models, size, __name__
    return kind


def config_of_size(spec: ScorerSpec, size: str) -> object:
    """Return a scorer's config in the size "paper", "small" or "smoke"."""
    return spec.config(**{"paper": {}, "small": spec.small, "smoke": spec.smoke}[size])


def scorer_options(size: str) -> ScorerOptions:
    """Return the defaults of a size for all models."""
    return options_class(size, ())()


def restore_options(size: str, models: tuple[str, ...], values: tuple[dict[str, Any], ...]) -> ScorerOptions:
    """Unpickle the options of models."""
    configs = (spec_of(model).config(**given) for model, given in zip(models, values, strict=True))
    return options_class(size, models)(*configs)


def only_models(options: ScorerOptions, models: Iterable[str]) -> ScorerOptions:
    """Return the options of these models only, as the command line takes them and a run records them."""
    chosen = tuple(models)
    return options_class(options.size, chosen)(*map(options.config, chosen))


def with_chosen_scorers(config: Config, arguments: list[str]) -> Config:
    """Give a study the options of the models after --models or, without it, of the preset's. Raise for an option of
    another model."""
    if not hasattr(config, "scorers"):
        return config
    models = option_values("--models", arguments) or config.models
    owners = {f"--{name}": name for name in specs() if name not in models}
    for flag in (argument.partition(".")[0] for argument in arguments if "." in argument):
        if flag in owners:
            raise UserError(f"an option {flag}.* is given, but {owners[flag]} is not among --models")
    return replace(config, scorers=only_models(config.scorers, models))


def option_values(option: str, arguments: list[str]) -> list[str]:
    """Return the unparsed values of an option on a command line; if it is given twice, those of the last time."""
    values: list[str] = []
    for start, argument in enumerate(arguments):
        if argument == option:
            rest = arguments[start + 1 :]
            end = next((k for k, value in enumerate(rest) if value.startswith("--")), len(rest))
            values = rest[:end]
        elif argument.startswith(f"{option}="):
            values = argument.partition("=")[2].split()
    return values


@dataclass(frozen=True)
class PlaceOptions:
    """Where the runs of a study are made. Only device and threads affect results, by the order of sums."""

    out: Annotated[Path | None, PLACE, FIRST] = None
    """Folder of the results; without it, runs/STUDY-PRESET."""
    store: Annotated[Path, PLACE] = Path("store")
    """Folder of atlases and split files, which all studies share."""
    device: Annotated[str, PLACE, FIRST] = "cpu"
    """cpu or cuda."""
    threads: Annotated[int, PLACE, THREADS] = 1
    """Threads of each training run; part of the configuration, because rounding depends on it."""
    workers: Annotated[int, PLACE, FIRST, SOME_PROCESSES] = 0
    """Runs at once; 0 takes one per core, or a single one on cuda. On a cpu results don't depend on it."""
    cluster: Annotated[Cluster, tyro.conf.arg(name=""), PLACE] = field(default_factory=Cluster)
    """Where runs are made; results don't depend on it."""

    @property
    def cores(self) -> int:
        """Number of rendering processes: as configured, or one per core."""
        return self.workers or usable_cores()

    @property
    def at_once(self) -> int:
        """Number of runs at once: as configured, or one per core, or one on cuda."""
        return self.workers or (1 if self.device.startswith("cuda") else self.cores)


@dataclass(frozen=True)
class RunOptions(PlaceOptions):
    """How training runs are made. Only device and threads affect results."""

    loaders: Annotated[int, PLACE, SOME_PROCESSES] = 0
    """Processes that prepare the batches of each run; results don't depend on it. On a GPU a few keep it busy."""
    images_on_gpu: Annotated[float, PLACE, SHARE] = 0.1
    """Share of a GPU's free memory that the training images of each run may take, as bytes. If they fit they stay
    there, and no pixels travel with a batch; if not, or with 0, each batch brings its own. Results don't depend on it.
    """
    log: Annotated[tuple[Literal["tensorboard", "wandb"], ...], PLACE] = ()
    """Loggers of loss, validation and speed besides each run's training.csv: tensorboard, wandb, or both."""
    validate_every: Annotated[int, PLACE, Range(0, STEPS.high)] = 0
    """Steps between two evaluations on validation, which select nothing. 0: a tenth of the run, but at least 100."""
    keep_states: Annotated[tuple[int, ...], PLACE, Range(0, STEPS.high)] = ()
    """Steps after which each run's weights are kept too, as cells/ID/states/STEP; 0: before the first. A finished run
    without them repeats its steps to get them."""
    grad_checkpointing: Annotated[bool, PLACE] = False
    """Keep only the input of each transformer block in a step and compute the rest again: less memory, more time, the
    same results."""


# Fields that don't decide results; a run can be continued with other values.
EXECUTION = frozenset({item.name for item in fields(RunOptions)} - {"device", "threads"} | {"dry_run"})


@dataclass(frozen=True)
class ScorersOption:
    """The options of each model."""

    scorers: Annotated[ScorerOptions, tyro.conf.arg(name=""), MODEL, PARTS] = field(
        default_factory=partial(scorer_options, "small")
    )
    """Options of each model, by default in the sizes for small towers; only those of chosen models are recorded."""


@dataclass(frozen=True)
class ModelOptions(ScorersOption):
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
    recipe: Annotated[Recipe, tyro.conf.arg(name=""), TRAINING, Part("training")] = field(default_factory=Recipe)
    """Training recipe, the same for all models but for `tuned` ones. With pretrained weights each model's paper gives
    learning rates, warm-ups, weight decay and betas in place of these."""
