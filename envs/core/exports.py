"""What the files of a folder export under one name: kinds of data, benchmarks, parsers. Add one by adding a file."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import choose


@dataclass(frozen=True)
class Exports:
    """The exports called `name` of a package's files, each named by its file; a file is imported on request alone."""

    package: str
    folder: Path
    name: str
    kind: str
    """What messages call one of them."""
    gap: str = "-"
    """In names, in place of the underscores of files."""

    def names(self) -> tuple[str, ...]:
        """The names of all, sorted; imports none of them."""
        files = self.folder.glob("[!_.]*.py")
        stems = (file.stem for file in files if f"\n{self.name} = " in file.read_text(encoding="utf-8"))
        return tuple(sorted(stem.replace("_", self.gap) for stem in stems))

    def load(self, name: str) -> Any:
        """What the file of that name exports; raises for a name that is none, with the nearest one."""
        module = choose(self.kind, name, self.names()).replace(self.gap, "_")
        return getattr(import_module(f"{self.package}.{module}"), self.name)
