"""What every study's command line shares: presets by name, overrides by field."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from menagerie.envs.core.command_help import read_options, started_as
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, Option
from menagerie.studies.runs.scorer_options import with_own_scorers

Config = TypeVar("Config")


def runs_to_compare() -> tuple[Path, Path] | None:
    """The two folders after `--compare`, which stands alone; None without it."""
    if "--compare" not in sys.argv[1:]:
        return None
    if len(sys.argv) != 4 or sys.argv[1] != "--compare":
        raise UserError("write --compare RUN_A RUN_B, two folders of finished runs and nothing else")
    return Path(sys.argv[2]), Path(sys.argv[3])


# Options of earlier versions, and what takes their place, if anything does.
RENAMED = {
    "--warm-start": "--single-object-phase",
    "--leave-out-true": "--mask-false-negatives",
    "--no-leave-out-true": "--no-mask-false-negatives",
    "--oc-clip.context": "",
    "--clip.context": "",
}


def check_renamed(arguments: list[str]) -> None:
    """Raise for an option of an earlier version, with the new one."""
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if option in RENAMED:
            new = RENAMED[option]
            raise UserError(
                f"{option} is now {new}" if new else f"{option} is gone: the context follows from the texts"
            )


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
    check_renamed(rest)
    preset = with_own_scorers(presets[choose("preset", chosen.preset, presets)], rest)
    if chosen.recipe:
        from menagerie.generators.splits.recipe_file import read_recipe

        preset = preset.with_recipe(read_recipe(chosen.recipe))
    listed = ", ".join(f"{name} (default)" if name == default else name for name in presets)
    starts = Option("--preset NAME", f"Where the other options start: {listed}.")
    command = started_as()
    return chosen.preset, read_options(type(preset), rest, command, description, preset, (starts, *more, RECIPE))
