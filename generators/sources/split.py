"""Splits of our own, as one source among others."""

from generators.sources.registry import SourceSpec
from generators.storage.dataset import SplitDataset

SOURCE = SourceSpec("split", "one subset of a split file, by `python -m generators make`", SplitDataset)
