"""A small split to train on."""

import pytest

from menagerie.generators.storage.dataset import SplitDataset
from tests.helpers.splits import make_split


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> SplitDataset:
    """The training subset of a tiny split at 32 px."""
    return SplitDataset(make_split(tmp_path_factory.mktemp("store"), resolution=32), "train")
