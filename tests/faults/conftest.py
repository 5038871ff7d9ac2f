"""A split for all faults of pictures; it is copied before a fault is planted."""

import shutil
from pathlib import Path

import pytest

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.pack import pack
from tests.helpers.splits import lend, make_split

RECIPE = BindingRecipe(
    world="tiny", pairs=0.75, hard_negatives=0.5, views=2, test_views=4, test_scenes=120, template="conjunction"
)


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """A packed split file, which no test may change."""
    path = make_split(tmp_path_factory.mktemp("store"), RECIPE)
    pack(path)
    return path


@pytest.fixture
def damaged(sound, tmp_path) -> Path:
    """A copy of the split, to be damaged."""
    lend(tmp_path)
    folder = tmp_path / sound.parent.name
    shutil.copytree(sound.parent, folder)
    return folder / sound.name
