"""From scenes to captions, scene graphs, splits and HDF5 files. Independent of models."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generators.examples import Example
    from generators.parsers.any_caption import parse
    from generators.storage.dataset import SplitDataset

__all__ = ["Example", "SplitDataset", "parse"]

MODULES = {
    "Example": "generators.examples",
    "SplitDataset": "generators.storage.dataset",
    "parse": "generators.parsers.any_caption",
}


def __getattr__(name: str) -> object:
    """Import what needs torch only at its first use, to keep the command line fast."""
    if name in MODULES:
        return getattr(import_module(MODULES[name]), name)
    raise AttributeError(f"module 'generators' has no attribute {name!r}")
