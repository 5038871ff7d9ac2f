"""Floors and folders import one way, as docs/architecture.md says, lazy imports included."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("envs", "generators", "models", "studies")
FILES = {
    ".".join(("menagerie", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for floor in FLOORS
    for path in sorted((ROOT / floor).rglob("*.py"))
}


def imported(path: Path) -> Iterator[str]:
    """The project's modules that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names: Iterable[str] = (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write imports in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in FILES:
                name = name.rpartition(".")[0]
            if name:
                yield name


@cache
def edges() -> dict[str, set[str]]:
    """Which modules each module imports."""
    return {name: set(imported(path)) - {name} for name, path in FILES.items()}


def folder_of(name: str) -> str:
    """The folder of a module; one directly on its floor is a folder of its own."""
    parts = name.split(".")
    return ".".join(parts[:3]) if len(parts) > 3 or FILES[name].name == "__init__.py" else name


@pytest.mark.parametrize("whole", [str, folder_of], ids=["modules", "folders"])
def test_no_imports_are_circular(whole):
    """Of modules, and of folders."""
    order: dict[str, set[str]] = defaultdict(set)
    for name, others in edges().items():
        # A package's __init__ is the name by which its parts import it: `menagerie.envs.animals` and its files.
        order[whole(name)] |= {whole(its) for its in others if not name.startswith(f"{its}.")} - {whole(name)}
    try:
        list(TopologicalSorter(order).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.parametrize("package", ["menagerie", "menagerie.studies", "menagerie.studies.frame"])
def test_type_checkers_know_the_public_names(package):
    """A stub gives on what it imports `as` the same name, and nothing else."""
    lazy = import_module(package)
    stub = ast.parse(Path(lazy.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert seen.keys() == {*lazy.__all__}
    for name, module in seen.items():
        assert getattr(lazy, name) is getattr(import_module(f"{package}.{module}"), name)


def test_floors_import_downwards():
    def floor(name: str) -> int:
        return FLOORS.index(name.split(".")[1])

    pairs = ((name, other) for name, others in edges().items() for other in others)
    upward = [f"{name} imports {other}" for name, other in pairs if floor(other) > floor(name)]
    assert not upward
