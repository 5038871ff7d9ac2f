"""Write a starting file for a study of your own: it runs as it is.

menagerie new my_question.py
menagerie run my_question.py --preset smoke
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text

TEMPLATE = Path(__file__).with_name("own_study.txt")


@dataclass(frozen=True)
class Config:
    """Where to write it."""

    file: Annotated[Path, tyro.conf.Positional]
    """A Python file that isn't there yet."""


def run(config: Config) -> None:
    """Write the file."""
    if config.file.suffix != ".py":
        raise UserError(f"{config.file} is no name of a Python file; write {config.file.with_suffix('.py')}")
    if config.file.exists():
        raise UserError(f"{config.file} is there already; choose another name, or delete it")
    write_text(config.file, TEMPLATE.read_text("utf-8"))
    print(f"{config.file}: run it by `menagerie run {config.file} --preset smoke`")
