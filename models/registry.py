"""Scorers by name: the specs in `models/scorers/`, and users' classes. Listing names doesn't import torch."""

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.plugins import OWN_MODULES, load_constant, own_module
from menagerie.models.spec import ScorerSpec, spec_of_class

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer

FOLDER = Path(__file__).parent / "scorers"


@cache
def specs() -> dict[str, ScorerSpec]:
    """The specs of all registered scorers, sorted by name: the `SPECS` of every file in `models/scorers/`."""
    files = sorted(FOLDER.glob("[!_.]*.py"))
    every = [spec for file in files for spec in load_constant(f"menagerie.models.scorers.{file.stem}", "SPECS")]
    by_name = {spec.name: spec for spec in sorted(every, key=lambda spec: spec.name)}
    if len(by_name) < len(every):
        raise UserError(f"two scorers in {FOLDER} have one name; rename one")
    return by_name


def check_scorer(name: str) -> str:
    """Return `name` if it is a registered scorer or an existing `file.py:Class`; else raise."""
    path, _, class_name = name.rpartition(":")
    if not path:
        return choose("model", name, specs())
    if not Path(path).is_file() or not class_name.isidentifier():
        raise UserError(f"model {name!r} is not a file.py:Class; there must be a file {path!r} with that class")
    return name


def is_own(name: str) -> bool:
    """Whether a name has the form file.py:Class of a user's class."""
    return ".py:" in name


def same_scorer(one: str, other: str) -> bool:
    """Whether two names mean one scorer, even if a user's file is given relative to different folders."""
    return short_name(one) == short_name(other)


def short_name(name: str) -> str:
    """A scorer's name without folders: "folder/mine.py:Mine" -> "mine.py:Mine"; other names stay unchanged."""
    return Path(name).name if is_own(name) else name


def spec_of(name: str) -> ScorerSpec:
    """The spec of a registered scorer, or of a user's class, whose file is run."""
    return specs()[name] if name in specs() else spec_of_class(name, own_class(check_scorer(name)))


def scorer_class(name: str) -> "type[Scorer]":
    """The class that implements a scorer."""
    if check_scorer(name) not in specs():
        return own_class(name)
    module, _, class_name = specs()[name].implementation.rpartition(":")
    return getattr(importlib.import_module(module), class_name)


def own_file(kind: type) -> str:
    """The user's file in which a class is defined; empty for other classes."""
    return str(sys.modules[kind.__module__].__file__) if kind.__module__.startswith(OWN_MODULES) else ""


@cache
def own_class(name: str) -> "type[Scorer]":
    """The user's class named by `file.py:Class`; its file is run."""
    from menagerie.models.scorer import Scorer

    path, _, class_name = name.rpartition(":")
    kind = getattr(own_module(path), class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, Scorer)):
        raise UserError(f"{path} has no class {class_name!r} that extends menagerie.models.scorer.Scorer")
    return kind
