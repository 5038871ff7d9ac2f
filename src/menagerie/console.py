"""Scenes, splits, scorers and studies from the command line.

menagerie gallery --out scenes.png          # contact sheets of a world
menagerie photos FOLDER                     # worlds of cut-out photographs, from a Debian package or of your own
menagerie physics                           # settled poses and distances between animals
menagerie check-renderer                    # own animals' limits; the compositor against others (--external)
menagerie check-world                       # renders every scene of a world and checks it

menagerie recipes                           # the built-in recipes of splits
menagerie make spatial --pairs 0.6 --dry-run  # a recipe by name, with overrides
menagerie make mine.toml                    # your own recipe
menagerie audit FILE                        # checks a split and its images
menagerie inspect FILE                      # its content: recipe, subsets, fractions
menagerie pack FILE                         # puts pictures and texts into a file, to share it
menagerie export FILE --format coco --out F # the format of another tool
menagerie parse FILE --parser spacy-rules   # captions to scene graphs
menagerie nmi FILE                          # how much objects in captions tell of their attributes
menagerie import-hf FOLDER --data-root DATA # a benchmark as the Hugging Face hub has it

menagerie cards verify CARD.json            # what a model scores on a frozen benchmark: does it hold?

menagerie scorers                           # the scorers and towers that studies can train
menagerie new FILE.py                       # a starting file for a study of your own
menagerie run FILE.py                       # runs it
"""

import ast
import runpy
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

from menagerie.envs.core.command_help import HELP, chosen_command, read_options
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import docstring

# Each is a class of options with `run`, or a module with both, the options as `Config`; its docstring describes it.
# `run` gives the exit status; `read`, where there is one, reads the options.
COMMANDS = {
    "gallery": "envs.checks.gallery",
    "photos": "envs.custom.photos",
    "physics": "envs.checks.physics",
    "check-renderer": "envs.checks.against_direct",
    "check-world": "studies.commands.worlds:CheckWorld",
    "recipes": "studies.commands.worlds:Recipes",
    "make": "studies.commands.worlds:Make",
    "audit": "studies.commands.splits:Audit",
    "inspect": "studies.commands.splits:Inspect",
    "pack": "studies.commands.splits:Pack",
    "export": "studies.commands.splits:Export",
    "parse": "studies.commands.splits:Parse",
    "nmi": "studies.commands.splits:Nmi",
    "import-hf": "studies.commands.splits:ImportHf",
    "cards": "studies.commands.cards:Cards",
    "scorers": "studies.commands.worlds:Scorers",
    "new": "studies.commands.worlds:New",
}


def main() -> int:
    """Run the command or the study named first, with the options after it."""
    folder = Path(str(import_module("menagerie.studies").__file__)).parent
    studies = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_.]*.py"))}
    texts = (f"menagerie {name:<20} # {question(path)}" for name, path in studies.items())
    # Help alone reads the studies' files.
    about = "" if sys.argv[1:] and sys.argv[1] not in HELP else "\n".join((docstring(sys.modules[__name__]), *texts))
    name = chosen_command("menagerie", about, (*COMMANDS, "run", *studies))
    if name == "run":
        return run_file(sys.argv[2:])
    if name in COMMANDS:
        return run_listed(name, sys.argv[2:])
    del sys.argv[1]
    runpy.run_module(f"menagerie.studies.{name.replace('-', '_')}", run_name="__main__", alter_sys=True)
    return 0


def run_file(arguments: list[str]) -> int:
    """Run a study of the user's: a Python file, and its options."""
    if arguments and arguments[0] in HELP:
        print(f"usage: menagerie run FILE.py [OPTIONS]\n\n{docstring(run_file)} FILE.py --help lists them.")
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise UserError("write menagerie run FILE.py [OPTIONS]; `menagerie new FILE.py` writes a study to start from")
    file = Path(arguments[0])
    if not file.is_file():
        raise UserError(f"{file} is no file; `menagerie new {file}` writes a study to start from")
    sys.argv[:], sys.path[:] = [str(file), *arguments[1:]], [str(file.resolve().parent), *sys.path]
    runpy.run_path(str(file), run_name="__main__")
    return 0


def question(script: Path) -> str:
    """Return the first line of a study's docstring."""
    return (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0]


def run_listed(name: str, arguments: list[str]) -> int:
    """Run one of `COMMANDS`; returns its exit status."""
    module, _, kind = COMMANDS[name].partition(":")
    command = resolve_name(f"menagerie.{module}:{kind}")
    options, about = getattr(command, "Config", command), docstring(command)
    read = getattr(command, "read", None) or partial(read_options, options, description=about)
    return int(command.run(read(arguments=arguments, command=f"menagerie {name}")) or 0)


def start() -> None:
    """Run the command `menagerie`: the entry point that pyproject.toml names."""
    run_command(main)
