"""Scorers by name. Names are known without importing torch, so that command lines answer at once."""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from envs.common.errors import UserError, choose

if TYPE_CHECKING:
    from models.scorer import Scorer

# Add a scorer by adding an entry: name -> "module:class".
SCORERS: dict[str, str] = {
    "clip": "models.scorers.clip.model:CLIPScorer",
    "oc-clip": "models.scorers.oc_clip.model:OCCLIPScorer",
}


def check_scorer(name: str) -> str:
    """Return `name` if it is a registered scorer or an existing `file.py:Class`; else raise."""
    path, _, class_name = name.rpartition(":")
    if not path:
        return choose("model", name, SCORERS)
    if not Path(path).is_file() or not class_name.isidentifier():
        raise UserError(f"model {name!r} is not a file.py:Class; there must be a file {path!r} with that class")
    return name


def scorer_class(name: str) -> "type[Scorer]":
    """The class of a registered scorer, or a user's own class from `file.py:Class`."""
    path, _, class_name = SCORERS.get(check_scorer(name), name).rpartition(":")
    if name in SCORERS:
        return getattr(importlib.import_module(path), class_name)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, class_name, None)
    from models.scorer import Scorer

    if not (isinstance(found, type) and issubclass(found, Scorer)):
        raise UserError(f"{path} has no class {class_name!r} that extends models.scorer.Scorer")
    return found
