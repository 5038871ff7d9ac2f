"""Small splits to train on, at 32 px."""

import pytest

from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from tests.helpers.splits import make_split


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> SplitDataset:
    """The training subset of a tiny split."""
    return SplitDataset(make_split(tmp_path_factory.mktemp("store"), resolution=32), "train")


@pytest.fixture(scope="session")
def spatial(tmp_path_factory) -> SplitDataset:
    """The training subset of a tiny split whose captions state relations, which the local loss alters."""
    recipe = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=5)
    return SplitDataset(make_split(tmp_path_factory.mktemp("spatial"), recipe, resolution=32), "train")
