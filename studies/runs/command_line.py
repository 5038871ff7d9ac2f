"""What every study's command line shares: presets by name, overrides by field, and the options of all scorers."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from menagerie.envs.core.command_help import read_options, started_as
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import differing
from menagerie.envs.core.options import DATA, Option
from menagerie.models.registry import spec_of, specs
from menagerie.models.spec import ScorerSpec

Config = TypeVar("Config")


def runs_to_compare() -> tuple[Path, Path] | None:
    """The two folders after `--compare`, which stands alone; None without it."""
    if "--compare" not in sys.argv[1:]:
        return None
    if len(sys.argv) != 4 or sys.argv[1] != "--compare":
        raise UserError("write --compare RUN_A RUN_B, two folders of finished runs and nothing else")
    return Path(sys.argv[2]), Path(sys.argv[3])


COMPARE = Option("--compare RUN_A RUN_B", "How run B differs from run A, record by record; without other options.")
RECIPE = Option("--recipe NAME", "Splits of a recipe: one of `menagerie recipes`, or a TOML file.", group=DATA)


def parse(
    presets: Mapping[str, Config], default: str, description: str, more: Iterable[Option] = ()
) -> tuple[str, Config]:
    """The preset named by `--preset`, with the fields overridden that the command line gives.

    Help shows `more` options, which are read elsewhere, beside them.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", default=default)
    first.add_argument("--recipe")
    chosen, rest = first.parse_known_args(sys.argv[1:])
    preset = with_own_scorers(presets[choose("preset", chosen.preset, presets)], rest)
    if chosen.recipe:
        from menagerie.generators.splits.recipe_file import read_recipe

        preset = preset.with_recipe(read_recipe(chosen.recipe))
    listed = ", ".join(f"{name} (default)" if name == default else name for name in presets)
    starts = Option("--preset NAME", f"Where the other options start: {listed}.")
    command = started_as()
    return chosen.preset, read_options(type(preset), rest, command, description, preset, (starts, *more, RECIPE))


SIZES = ("paper", "small", "smoke")


@dataclass(frozen=True)
class ScorerOptions:
    """The config of each scorer that may be chosen, under its flag (`oc_clip`). Made by `scorer_options`."""

    models: ClassVar[tuple[str, ...]] = ()
    """Registered names and file.py:Class, one for each field."""
    size: ClassVar[str] = "paper"

    def of(self, model: str) -> dict[str, Any]:
        """The options of a model that are not its paper's."""
        return differing(getattr(self, spec_of(model).flag))

    def __reduce__(self) -> tuple[Any, ...]:
        own = [getattr(self, item.name) for item in fields(self)]
        # Plain values: in another process a user's own file has to be run before its config can be had.
        values = tuple({item.name: getattr(one, item.name) for item in fields(one)} for one in own)
        return restored, (self.size, self.models, values)


@cache
def options_class(size: str, models: tuple[str, ...]) -> type[ScorerOptions]:
    """The class with a field for each of `models`."""
    own = [(spec_of(model).flag, spec_of(model).config, field(default=sized(spec_of(model), size))) for model in models]
    if len({flag for flag, *_ in own}) < len(own):
        raise UserError(f"two of {', '.join(models)} have one name for their options; rename a class")
    kind = make_dataclass("ScorerOptions", own, bases=(ScorerOptions,), frozen=True)
    kind.models, kind.size, kind.__module__ = models, size, __name__
    return kind


def sized(spec: ScorerSpec, size: str) -> object:
    """A scorer's config in one of `SIZES`."""
    return spec.config(**{"paper": {}, "small": spec.small, "smoke": spec.smoke}[size])


def scorer_options(size: str, more: Iterable[str] = ()) -> ScorerOptions:
    """The options of all registered scorers in one of `SIZES`, and of `more` models."""
    return options_class(size, (*specs(), *(model for model in more if model not in specs())))()


def restored(size: str, models: tuple[str, ...], values: tuple[dict[str, Any], ...]) -> ScorerOptions:
    """What was pickled."""
    configs = (spec_of(model).config(**its) for model, its in zip(models, values, strict=True))
    return options_class(size, models)(*configs)


def only(options: ScorerOptions, models: Iterable[str]) -> ScorerOptions:
    """The options of the chosen models alone, as a run records them."""
    chosen = tuple(models)
    return options_class(options.size, chosen)(*(getattr(options, spec_of(model).flag) for model in chosen))


def with_own_scorers(config: Config, arguments: list[str]) -> Config:
    """The configuration with options for the `file.py:Class` that a command line names after --models."""
    own = [model for model in values_of("--models", arguments) if ".py:" in model]
    for name in ("scorers", "grid"):
        inner = getattr(config, name, None)
        if own and isinstance(inner, ScorerOptions):
            return replace(config, scorers=scorer_options(inner.size, own))
        if own and is_dataclass(inner):
            return replace(config, **{name: with_own_scorers(inner, arguments)})
    return config


def values_of(option: str, arguments: list[str]) -> list[str]:
    """What a command line gives for an option, before it is parsed."""
    values: list[str] = []
    for start, argument in enumerate(arguments):
        if argument == option:
            rest = arguments[start + 1 :]
            end = next((k for k, value in enumerate(rest) if value.startswith("--")), len(rest))
            values = rest[:end]
        elif argument.startswith(f"{option}="):
            values = argument.partition("=")[2].split()
    return values
