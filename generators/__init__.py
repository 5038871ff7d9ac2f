"""Scenes become captions and scene graphs, splits and HDF5 files. Knows nothing of networks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generators.examples import Example
    from generators.storage.dataset import SplitDataset

__all__ = ["Example", "SplitDataset"]


def __getattr__(name: str) -> object:
    """Import torch's part only when it is asked for: the command line must answer at once."""
    if name in __all__:
        from generators.storage import dataset

        return getattr(dataset, name)
    raise AttributeError(f"module 'generators' has no attribute {name!r}")
