"""Loads code from files that users add: a Python file of their own, or one in a folder of this package (a parser, a
benchmark)."""

import hashlib
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from menagerie.envs.core.errors import UserError, choose

OWN_MODULES = "menagerie_own_"  # prefix of the names under which users' files are imported


def own_module(path: str | Path) -> ModuleType:
    """Return the module of a user's file. The file is run once in this process, and again after it has changed.

    Raises a `UserError` if it can't be run.
    """
    place = Path(path).resolve()
    return run_once(place, place.stat().st_mtime_ns if place.is_file() else 0)


@cache
def run_once(path: Path, changed: int) -> ModuleType:
    """Run the file under a unique module name; as for a script, imports look in its folder first.

    It is compiled each time, as Python's compiled files (.pyc) miss an edit within a second that keeps the file's size.
    """
    if path.suffix != ".py":
        raise UserError(f"{path} is no Python file (.py)")
    name = f"{OWN_MODULES}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = sys.modules[name] = ModuleType(name)  # dataclasses and pickles look it up there
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
        check_imports(path)
    except (Exception, SystemExit) as error:
        del sys.modules[name]  # other processes run the files that they find there
        raise UserError(f"{path} can't be run ({type(error).__name__}: {error}); mend it and start again") from error
    return module


def check_imports(path: Path) -> None:
    """Raise if a file that was run got another module than the one beside it."""
    for name, source in local_imports(path).items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != source:
            raise ImportError(f"{name} lies in {source}, but {loaded} was imported; rename your own")


def own_sources(path: Path) -> list[Path]:
    """A user's file, and the files below its folder that it imports, directly or not; nothing is run.

    Only `import` statements are followed.
    """
    return [path, *sorted(set(local_imports(path).values()) - {path.resolve()})]


def local_imports(path: Path) -> dict[str, Path]:
    """The modules below a file's folder that the file imports, directly or not: paths by module name; runs nothing."""
    finder = ModuleFinder(path=[str(path.parent)])
    try:
        finder.run_script(str(path))
    except (SyntaxError, ValueError, OSError) as error:
        raise UserError(f"{path} can't be read ({type(error).__name__}: {error}); mend it and start again") from error
    files = {name: Path(module.__file__).resolve() for name, module in finder.modules.items() if module.__file__}
    return {name: file for name, file in files.items() if name != "__main__"}


def load_constant(module: str, name: str) -> Any:
    """Return the value called `name` in a module of this package, in a folder to which users may add files.

    Raises a `UserError` that names the file if the value is missing, or if the module can't build it (a wrong field).
    """
    try:
        return getattr(import_module(module), name)
    except (TypeError, AttributeError, UserError) as error:
        found = find_spec(module)
        raise UserError(f"{found.origin if found else module} can't be used: {error}; mend it") from error


@dataclass(frozen=True)
class Exports:
    """The exports of a package's files. For `name` "PARSER", the constant `PARSER` of `t5.py` is the export "t5", and
    `PARSER_LARGE` is the export "large", in whichever file it is.

    Two exports that differ little can thus share a file. A file is imported when one of its exports is loaded.
    """

    package: str
    folder: Path
    name: str
    kind: str
    """The noun for an export in messages, such as "parser"."""
    gap: str = "-"
    """The separator of words in export names; file names have underscores instead."""

    def names(self) -> tuple[str, ...]:
        """The names of all exports, sorted; imports no file."""
        return tuple(sorted(self._found()))

    def load(self, name: str) -> Any:
        """Return the export called `name`; raises for an unknown name, and suggests the nearest."""
        found = self._found()
        module, attribute = found[choose(self.kind, name, sorted(found))]
        return load_constant(f"{self.package}.{module}", attribute)

    def _found(self) -> dict[str, tuple[str, str]]:
        """Module and attribute of each export, by the export's name."""
        constant = re.compile(rf"^({self.name}(?:_([A-Z0-9_]+))?) = ", re.MULTILINE)
        return {
            (suffix.lower() or file.stem).replace("_", self.gap): (file.stem, attribute)
            for file in sorted(self.folder.glob("[!_.]*.py"))
            for attribute, suffix in constant.findall(file.read_text(encoding="utf-8"))
        }
