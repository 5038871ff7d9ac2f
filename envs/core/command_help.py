"""Help of commands: `--help` shows what matters first, `--help-all` the rest, `--help-all WORD` options with a word."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import Group, Option, list_options
from menagerie.envs.core.validation import validate

Config = TypeVar("Config")
Sections = Mapping[str, Sequence[Option]]

HELP = ("-h", "--help", "--help-all")
INDENT = 28  # columns of an option before its text begins
MARGINS = {"initial_indent": " " * INDENT, "subsequent_indent": " " * INDENT, "break_on_hyphens": False}


def read_options(
    kind: type[Config],
    arguments: Sequence[str],
    command: str,
    description: str = "",
    default: Config | None = None,
    more: Iterable[Option] = (),
) -> Config:
    """Parse `arguments` into the dataclass `kind`; if they ask for help, print it and exit.

    `command` is how the program is started; `default` gives the values of fields without an argument. Help also lists
    `more`, options that other code reads.
    """
    if requested := help_requested(arguments):
        options = [*more, *list_options(kind, default)]
        if requested == "--help-all" and (word := arguments[-1]) != requested:
            options = [its._replace(inner=False) for its in options if word in f"{its.group.value} {its.usage}"]
            if not options:
                raise UserError(f"--help-all {word}: no option has this in its name or group")
        usage = " ".join([command, *(option.usage for option in options if not option.usage.startswith("-"))])
        print(help_text(usage, description, by_group(options), everything=requested == "--help-all"))
        sys.exit()
    flags = [option.usage.split()[0].rstrip(",") for option in list_options(kind, default)]
    if twice := [flag for flag in flags if flags.count(flag) > 1]:
        raise UserError(f"{kind.__name__} has two options {twice[0]}; rename the field of its own")
    import tyro

    given = {} if default is None else {"default": default}
    config = tyro.cli(kind, args=arguments, prog=command, description=description, **given)
    validate(config)
    return config


def choose_command(command: str, description: str, names: Iterable[str]) -> str:
    """Return the first argument, which names a command; without one, or with --help, print the commands and exit."""
    known = list(names)
    if len(sys.argv) < 2 or sys.argv[1] in HELP:
        print(f"usage: {command} {{{','.join(known)}}} [OPTIONS]\n\n{description.strip()}")
        sys.exit()
    return choose("command", sys.argv[1], known)


def running_command() -> str:
    """The command that started the running study, without options: `menagerie tune`, or `python studies/tune.py`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec and spec.name.startswith("menagerie.studies."):
        return f"menagerie {spec.name.rpartition('.')[2].replace('_', '-')}"
    return f"python {sys.argv[0]}"


def help_requested(arguments: Sequence[str]) -> str:
    """The first argument that asks for help (`HELP`); empty if none does."""
    return next((argument for argument in arguments if argument in HELP), "")


def help_text(usage: str, description: str, groups: Sections, everything: bool) -> str:
    """Write the text of --help: usage, the `summary_lines` of the description, and by group the options marked as
    `first` and the positional arguments, shortened. With `everything` (--help-all), or if no option is marked, write
    all others too, of inner ones only the usage."""
    whole = everything or not any(option.first for options in groups.values() for option in options)
    lines, left_out = [f"usage: {usage} [OPTIONS]", ""], 0
    lines += description.strip().splitlines() if whole else summary_lines(description)
    width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))
    for name, options in groups.items():
        shown = [its for its in options if its.first or its.usage[0] != "-" or (whole and not its.inner)]
        rest = ", ".join(option.usage for option in options if option not in shown)
        left_out += len(options) - len(shown)
        if shown or whole:
            lines += ["", f"{name}:", *(option_text(option, width, whole) for option in shown)]
            lines += [textwrap.fill(f"also {rest}", width, **MARGINS)] if rest and whole else []
    if left_out:
        others = "WORD describes those with WORD in them" if whole else f"describes these, and the {left_out} others"
        lines += ["", f"--help-all {others}"]
    return "\n".join(lines)


def summary_lines(description: str) -> list[str]:
    """The first paragraph of a description, and its indented lines, which are example commands."""
    paragraph, *rest = description.strip().split("\n\n")
    commands = [line for block in rest for line in block.splitlines() if line.startswith("    ")]
    return [*paragraph.splitlines(), *([""] if commands else []), *(line[2:] for line in commands)]


def by_group(options: Sequence[Option]) -> dict[str, list[Option]]:
    """Arrange options by the name of their group, with the options marked as `first` at the start of each group. A
    single group is called "options"."""
    ordered = sorted(options, key=lambda option: not option.first)
    every = ((group.value, [option for option in ordered if option.group is group]) for group in Group)
    groups = {name: members for name, members in every if members}
    return groups if len(groups) > 1 else {"options": ordered}


def option_text(option: Option, width: int, whole: bool) -> str:
    """What help says of an option: its usage, the `whole` of its text or only the first sentence, and its default."""
    text = option.text if whole else f"{option.text.removesuffix('.')}. ".partition(". ")[0]
    default = "(required)" if option.required else f"(default: {option.default})" if option.default else ""
    left, right = f"  {option.usage}", textwrap.fill(f"{text} {default}", width, **MARGINS)
    return (left.ljust(INDENT) + right.lstrip() if len(left) < INDENT - 1 else f"{left}\n{right}").rstrip()
