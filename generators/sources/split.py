"""Splits of our own, as one source among others."""

from menagerie.generators.sources.registry import SourceSpec
from menagerie.generators.storage.dataset import SplitDataset

SOURCE = SourceSpec("split", "one subset of a split file, by `menagerie make`", SplitDataset)
