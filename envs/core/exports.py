"""What the files of a folder export under one name: kinds of data, benchmarks, parsers. Add one by adding a file."""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import choose


@dataclass(frozen=True)
class Exports:
    """The exports of a package's files: `NAME = ...`, called like its file, or `NAME_OTHER = ...`, called "other".

    So two that differ in little may share a file. A file is imported when one of its exports is asked for.
    """

    package: str
    folder: Path
    name: str
    kind: str
    """What messages call one of them."""
    gap: str = "-"
    """In names, in place of the underscores of files."""

    def names(self) -> tuple[str, ...]:
        """The names of all, sorted; imports none of them."""
        return tuple(sorted(self._found()))

    def load(self, name: str) -> Any:
        """The export of that name; raises for a name that is none, with the nearest one."""
        found = self._found()
        module, attribute = found[choose(self.kind, name, sorted(found))]
        return getattr(import_module(f"{self.package}.{module}"), attribute)

    def _found(self) -> dict[str, tuple[str, str]]:
        """The module and the attribute of each export, by its name."""
        pattern = re.compile(rf"^({self.name}(?:_([A-Z0-9_]+))?) = ", re.MULTILINE)
        found = {}
        for file in sorted(self.folder.glob("[!_.]*.py")):
            for attribute, suffix in pattern.findall(file.read_text(encoding="utf-8")):
                found[(suffix.lower() or file.stem).replace("_", self.gap)] = file.stem, attribute
        return found
