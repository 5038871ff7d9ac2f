"""Splits from the command line.

python -m generators list                               # the built-in recipes
python -m generators make spatial --pairs 0.6 --dry-run # a recipe by name, with overrides
python -m generators make mine.toml                     # your own recipe
python -m generators make spatial --cluster slurm       # renders in a job array
python -m generators audit FILE                         # checks a split and the images of its store
python -m generators inspect FILE --html report.html    # its content: subsets, fractions, samples, co-occurrences
python -m generators pack FILE                          # one self-contained file to share
python -m generators export FILE --format coco --out F  # the format of another tool
python -m generators parse FILE --parser spacy-rules    # captions to scene graphs
python -m generators import-hf FOLDER --data-root DATA  # a benchmark as the Hugging Face hub has it
python -m generators check                              # renders every scene of a world and checks it
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from envs.common.command_help import chosen_command, read_options
from envs.common.errors import run_command
from generators.commands import NAMES

COMMAND = "python -m generators"


def main() -> int:
    """Run the command named first, with the options after it."""
    name = chosen_command(COMMAND, __doc__, NAMES)
    command = import_module(f"generators.commands.{name.replace('-', '_')}")
    return int(command.run(read(command, sys.argv[2:], f"{COMMAND} {name}")))


def read(command: ModuleType, arguments: list[str], start: str) -> Any:
    """The options of a command that is started as `start`."""
    if hasattr(command, "read"):
        return command.read(arguments, start)
    return read_options(command.Config, arguments, start, command.Config.__doc__)


if __name__ == "__main__":
    run_command(main)
