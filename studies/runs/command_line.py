"""Command lines of studies: presets by name, overrides by field, and the options of all scorers."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from menagerie.envs.core.command_help import read_options, running_command
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import changed_fields
from menagerie.envs.core.options import DATA, Option
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec

Config = TypeVar("Config")


def runs_to_compare() -> tuple[Path, Path] | None:
    """Return the two folders after `--compare`, or None without it. Raise if it isn't the only option."""
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
    """Parse the command line into the preset's name and its configuration. Help also lists `more`, read by others."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.set_defaults(recipe=None)
    first.add_argument("--preset", default=default)
    if takes_recipes := hasattr(presets[default], "with_recipe"):
        first.add_argument("--recipe")
    chosen, rest = first.parse_known_args(sys.argv[1:])
    preset = with_chosen_scorers(presets[choose("preset", chosen.preset, presets)], rest)
    if chosen.recipe:
        from menagerie.generators.splits.recipe_file import read_recipe

        before, preset = preset, preset.with_recipe(read_recipe(chosen.recipe))
        print_changes(chosen.recipe, before, preset)
    listed = ", ".join(f"{name} (default)" if name == default else name for name in presets)
    starts = Option("--preset NAME", f"Where the other options start: {listed}.")
    shown = (*[starts] * (len(presets) > 1), *more, *[RECIPE] * takes_recipes)
    return chosen.preset, read_options(type(preset), rest, running_command(), description, preset, shown)


def print_changes(recipe: str, before: Any, after: Any) -> None:
    """Print which options of a preset a recipe changes, also by fields that its file leaves at their defaults."""
    names = [item.name for item in fields(after) if item.name != "base"]
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    if changed:
        said = "; ".join(f"{name} {getattr(after, name)}, preset {getattr(before, name)}" for name in changed)
        print(f"--recipe {recipe} changes {said}", flush=True)


@dataclass(frozen=True)
class ScorerOptions:
    """The options of the chosen models, a field for each (`oc_clip`); other models have the defaults of a size."""

    models: ClassVar[tuple[str, ...]] = ()  # the scorer of each field, registered or file.py:Class
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


@cache
def options_class(size: str, models: tuple[str, ...]) -> type[ScorerOptions]:
    """Return the class with a field for each of `models`. Raise if a user's class has the flag of another scorer."""
    owner = {spec.flag: name for name, spec in specs().items()}
    for model in models:
        if (first := owner.setdefault(spec_of(model).flag, model)) != model:
            raise UserError(f"the options of {first} and {model} would both be --{spec_of(model).name}.…; rename one")
    items = [(spec.flag, spec.config, field(default=config_of_size(spec, size))) for spec in map(spec_of, models)]
    kind = make_dataclass("ScorerOptions", items, bases=(ScorerOptions,), frozen=True)
    kind.models, kind.size, kind.__module__ = models, size, __name__
    return kind


def config_of_size(spec: ScorerSpec, size: str) -> object:
    """Return a scorer's config in a size."""
    return spec.config(**{"paper": {}, "small": spec.small, "smoke": spec.smoke}[size])


def scorer_options(size: str) -> ScorerOptions:
    """Return the defaults of a size for all models."""
    return options_class(size, ())()


def only_models(options: ScorerOptions, models: Iterable[str]) -> ScorerOptions:
    """Return the options of these models only, as the command line takes them and a run records them."""
    chosen = tuple(models)
    return options_class(options.size, chosen)(*map(options.config, chosen))


def with_chosen_scorers(config: Config, arguments: list[str]) -> Config:
    """Give a study the options of the models after --models, by default of the preset's, and refuse those of others."""
    if not hasattr(config, "scorers"):
        return config
    read = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    read.add_argument("--models", nargs="*")
    models = read.parse_known_args(arguments)[0].models or config.models
    owners = {f"--{name}": name for name in specs() if name not in models}
    for flag in (argument.partition(".")[0] for argument in arguments if "." in argument):
        if flag in owners:
            raise UserError(f"an option {flag}.* is given, but {owners[flag]} is not among --models")
    return replace(config, scorers=only_models(config.scorers, models))
