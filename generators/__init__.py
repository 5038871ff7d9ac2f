"""From scenes to captions, scene graphs, splits and HDF5 files. Independent of models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generators.examples import Example
    from generators.storage.dataset import SplitDataset

__all__ = ["Example", "SplitDataset"]


def __getattr__(name: str) -> object:
    """Import what needs torch only at its first use, to keep the command line fast."""
    if name in __all__:
        from generators.storage import dataset

        return getattr(dataset, name)
    raise AttributeError(f"module 'generators' has no attribute {name!r}")
