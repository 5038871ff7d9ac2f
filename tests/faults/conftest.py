"""One made split for all faults, in several shards; it is copied before a fault is planted."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage import split_file
from menagerie.generators.storage.image_store import ImageStore
from tests.helpers.splits import shared_entries  # noqa: F401, a fixture for all tests here

RECIPE = BindingRecipe(
    world="tiny", pairs=0.75, hard_negatives=0.5, views=2, test_views=4, test_scenes=120, template="conjunction"
)
SHARD_ROWS = 256


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """A split file that nobody may change; its store has some scenes more, as other splits leave them."""
    planned = RECIPE.subsets()
    first = replace(planned["unseen_pairs"][0], view=0)
    store = ImageStore(tmp_path_factory.mktemp("store"), load_world("tiny"), 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", SHARD_ROWS)
        store.add([*RECIPE.with_partners(planned), first, swap_textures(first)])
    return split_file.make_split(store, RECIPE)


@pytest.fixture
def damaged(sound, tmp_path) -> Path:
    """The same split with its store, to be damaged."""
    folder = tmp_path / sound.parent.name
    shutil.copytree(sound.parent, folder)
    return folder / sound.name
