"""Code that is added by adding a file: a user's Python file, or one in a folder of ours (a parser, a benchmark)."""

import hashlib
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from menagerie.envs.core.errors import UserError, choose

OWN_MODULES = "menagerie_own_"  # how the names of these modules begin


def own_module(path: str | Path) -> ModuleType:
    """The module of a user's file, run once in this process, and again where it has changed.

    Raises a UserError where it can't be run.
    """
    place = Path(path).resolve()
    return run_once(place, place.stat().st_mtime_ns if place.is_file() else 0)


@cache
def run_once(path: Path, changed: int) -> ModuleType:
    """Run the file under a module name of its own; as for a script, imports look in its folder first."""
    place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    spec = spec_from_file_location(f"{OWN_MODULES}{path.stem}_{place}", path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file (.py)")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look it up there
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{path} can't be run ({type(error).__name__}: {error}); mend it and start again") from error
    for name, source in imported_beside(path).items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != source:
            raise UserError(f"{path} imports {name}, which lies in {source}, but got {loaded}; rename its own")
    return module


def own_sources(path: Path) -> list[Path]:
    """A user's file, and the files below its folder that it imports, directly or not; nothing is run.

    What a file imports in other ways than by `import` isn't found.
    """
    return [path, *sorted(set(imported_beside(path).values()) - {path.resolve()})]


def imported_beside(path: Path) -> dict[str, Path]:
    """The modules below a file's folder that it imports, directly or not, and where they lie; nothing is run."""
    finder = ModuleFinder(path=[str(path.parent)])
    try:
        finder.run_script(str(path))
    except (SyntaxError, ValueError, OSError) as error:
        raise UserError(f"{path} can't be read ({type(error).__name__}: {error}); mend it and start again") from error
    files = {name: Path(module.__file__).resolve() for name, module in finder.modules.items() if module.__file__}
    return {name: file for name, file in files.items() if name != "__main__"}


@dataclass(frozen=True)
class Exports:
    """The exports of a package's files: `NAME = ...`, called like its file, or `NAME_OTHER = ...`, called "other".

    So two that differ in little may share a file. A file is imported when one of its exports is asked for.
    """

    package: str
    folder: Path
    name: str
    kind: str
    """The noun by which messages call an export."""
    gap: str = "-"
    """The separator of words in names; file names have underscores there."""

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
