"""One name, one meaning: a name that several modules define is a protocol of theirs, and is listed here."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Name -> what it is, and where. A class may have a namesake in one other module; a function in none.
CLASSES = {
    "Config": ("options of a study or a command", "envs/checks", "envs/custom/photos.py", "studies"),
    "ImageEmbedding": ("what a scorer encodes an image as", "models/networks"),
    "TextEmbedding": ("what a scorer encodes a text as", "models/networks"),
}
FUNCTIONS = {
    "_albedo": ("colours of a texture at points of a body", "envs/textures"),
    "_draw": ("draws a background", "envs/backgrounds"),
    "_paint": ("which parts of an animal keep their own colours", "envs/animals"),
    "build": (
        "what a spec calls: a benchmark of its files, or a parser",
        "generators/benchmarks",
        "generators/parsers",
    ),
    "main": ("a program's entry, which gives the exit status", "src/menagerie/console.py", "studies"),
    "parts": ("the parts of a page", "studies/pages", "studies/sample_search", "studies/scoring"),
    "run": ("what a command does with its options", "envs/checks", "envs/custom/photos.py"),
    "scores": ("the numbers of models on tests", "studies/scoring"),
}
# Name -> why several modules have it, though it is no protocol; at most ten.
OTHERS: dict[str, str] = {}


@cache
def definitions() -> list[tuple[ast.stmt, str]]:
    """Every statement outside of others, with its file."""
    paths = [path for floor in ("envs", "generators", "models", "studies") for path in (ROOT / floor).rglob("*.py")]
    paths += (ROOT / "src/menagerie").glob("*.py")
    return [(node, path.relative_to(ROOT).as_posix()) for path in paths for node in ast.parse(path.read_bytes()).body]


def defined(kind: type) -> dict[str, set[str]]:
    """The files that define each class, or each function, outside of other definitions."""
    found: dict[str, set[str]] = defaultdict(set)
    for node, file in definitions():
        if isinstance(node, kind):
            found[node.name].add(file)
    return found


@pytest.mark.parametrize(
    ("kind", "most", "protocols"),
    [(ast.ClassDef, 2, CLASSES), (ast.FunctionDef, 1, FUNCTIONS)],
    ids=["class", "function"],
)
def test_a_name_in_several_modules_is_a_listed_protocol(kind, most, protocols):
    several = {name: files for name, files in defined(kind).items() if len(files) > most and name not in OTHERS}
    strange = {
        name: files
        for name, files in several.items()
        if not all(file.startswith(protocols.get(name, ("", "none"))[1:]) for file in files)
    }
    assert not strange, "\n".join(f"{name}: {', '.join(sorted(files))}" for name, files in sorted(strange.items()))
    assert protocols.keys() == several.keys(), "a listed protocol has no second module any more"


def test_exceptions_are_few_and_each_has_its_reason():
    assert len(OTHERS) <= 10
    assert OTHERS.keys() <= {name for name, files in defined(ast.FunctionDef).items() if len(files) > 1}
    assert all(OTHERS.values())
