"""Scorers, objectives, training and evaluation. Knows nothing of animals."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.library.load import load_scorer
    from models.library.loaded import LoadedScorer

__all__ = ["LoadedScorer", "load_scorer"]

MODULES = {"LoadedScorer": "models.library.loaded", "load_scorer": "models.library.load"}


def __getattr__(name: str) -> object:
    """Import what needs torch only at its first use, to keep the command line fast."""
    if name in MODULES:
        return getattr(import_module(MODULES[name]), name)
    raise AttributeError(f"module 'models' has no attribute {name!r}")
