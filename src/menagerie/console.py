"""Scenes, splits, scorers and studies from the command line."""

import ast
import runpy
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

from menagerie.envs.core.command_help import HELP, choose_command, read_options
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import docstring

# Of each command: a class of options with `run`, or a module with both, the options as `Config`; what may follow its
# name; what it is for. Docstrings describe more, `run` gives the exit status, and `read`, if any, reads the options.
COMMANDS = {
    "gallery": ("envs.checks.gallery", "--out scenes.png", "contact sheets of a world"),
    "photos": ("envs.custom.photos", "FOLDER", "worlds of cut-out photographs, from a Debian package or of your own"),
    "physics": ("envs.checks.physics", "", "settled poses and distances between animals"),
    "check-renderer": (
        "envs.checks.against_direct",
        "",
        "own animals' limits; the compositor against others (--external)",
    ),
    "check-world": ("studies.commands.worlds:CheckWorld", "", "renders every scene of a world and checks it"),
    "recipes": ("studies.commands.worlds:Recipes", "", "the built-in recipes of splits"),
    "make": ("studies.commands.worlds:Make", "spatial --pairs 0.6", "a recipe by name or mine.toml, with overrides"),
    "audit": ("studies.commands.splits:Audit", "FILE", "checks a split and its images"),
    "inspect": ("studies.commands.splits:Inspect", "FILE", "its content: recipe, subsets, fractions"),
    "pack": ("studies.commands.splits:Pack", "FILE", "puts pictures and texts into a file, to share it"),
    "export": ("studies.commands.splits:Export", "FILE --format coco --out F", "the format of another tool"),
    "parse": ("studies.commands.splits:Parse", "FILE --parser spacy-rules", "captions to scene graphs"),
    "false-captions": (
        "studies.commands.false_captions:FalseCaptions",
        "FILE --out F.jsonl",
        "false captions made from true ones",
    ),
    "nmi": ("studies.commands.splits:Nmi", "FILE", "how much objects in captions tell of their attributes"),
    "familiarity": (
        "studies.commands.familiarity:Familiarity",
        "CAPTIONS --benchmark NAME",
        "what of a benchmark's captions training had",
    ),
    "import-hf": ("studies.commands.splits:ImportHf", "FOLDER --data-root DATA", "a benchmark as the hub has it"),
    "cards": ("studies.commands.splits:Cards", "verify CARD.json", "whether scores on a frozen benchmark hold"),
    "published": (
        "studies.commands.published:Published",
        "",
        "published tables again, from the records of their runs",
    ),
    "scorers": ("studies.commands.worlds:Scorers", "", "the scorers and towers that studies can train"),
    "ledger": ("studies.commands.ledger:Ledger", "FILE.toml", "claims of papers: what is missing is run, then judged"),
    "new": ("studies.commands.worlds:New", "FILE.py", "a starting file for a study, benchmark or form of your own"),
}


def main() -> int:
    """Run the command or the study named first, with the options after it."""
    folder = Path(str(import_module("menagerie.studies").__file__)).parent
    studies = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[!_.]*.py"))}
    lines = [f"menagerie {f'{name} {more}':<33} # {text}" for name, (_, more, text) in COMMANDS.items()]
    if not sys.argv[1:] or sys.argv[1] in HELP:  # help alone reads the studies' files
        lines += [f"menagerie {name:<33} # {study_question(path)}" for name, path in studies.items()]
    about = "\n".join((docstring(sys.modules[__name__]), "", *lines))
    name = choose_command("menagerie", about, (*COMMANDS, "run", *studies))
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


def study_question(script: Path) -> str:
    """Return the first line of a study's docstring."""
    return (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0]


def run_listed(name: str, arguments: list[str]) -> int:
    """Run one of `COMMANDS`; returns its exit status."""
    module, _, kind = COMMANDS[name][0].partition(":")
    command = resolve_name(f"menagerie.{module}:{kind}")
    options, about = getattr(command, "Config", command), docstring(command)
    read = getattr(command, "read", None) or partial(read_options, options, description=about)
    return int(command.run(read(arguments=arguments, command=f"menagerie {name}")) or 0)


def start() -> None:
    """Run the command `menagerie`: the entry point that pyproject.toml names."""
    run_command(main)
