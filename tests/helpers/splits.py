"""Small splits, made, damaged and audited; audits in these tests render each scene once."""

import os
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import h5py
import pytest

from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage import split_file
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.vocabulary import Vocabulary

RECIPE = BindingRecipe(world="tiny", pairs=0.75, hard_negatives=0.5, views=1, test_views=1, test_scenes=20)


@cache
def shared_atlas() -> Path:
    """Atlas entries of all splits of a run of the tests, in all its processes: their names say what decides pixels."""
    return Path(os.environ.get("MENAGERIE_TESTS_ATLAS") or tempfile.mkdtemp(prefix="atlas"))


def lend_atlas(folder: Path) -> None:
    """Let commands of other processes in `folder` find what the tests have rendered."""
    shared_atlas().mkdir(exist_ok=True)
    (folder / "store").mkdir()
    (folder / "store/atlas").symlink_to(shared_atlas(), target_is_directory=True)


def make_split(root: Path, recipe: SplitRecipe = RECIPE, resolution: int = 16, codec: str = "none") -> Path:
    """Render and write a split below `root`, which has no atlas."""
    store = ImageStore(root, load_world(recipe.world), resolution)
    store.atlas = shared_atlas()
    store.add(recipe.scenes_to_render(), codec=codec)
    return split_file.make_split(store, recipe)


def failed(path: Path) -> list[str]:
    """The claims that fail in the audit."""
    return [finding.claim for finding in audit(path) if not finding.holds]


def overwrite(file: h5py.File, name: str, index: int, value: object) -> None:
    """Plant a fault: another value in one row of a column."""
    data = file[name][:]
    data[index] = value.encode() if isinstance(value, str) else value
    file[name][:] = data


@pytest.fixture(scope="session", autouse=True)
def shared_entries(tmp_path_factory):
    """What audits render they find again in the next test, as the renderer gives the same each time."""
    folder = tmp_path_factory.mktemp("entries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("menagerie.generators.audit.rendered.scratch_folder", lambda: nullcontext(folder))
        patch.setattr(
            "menagerie.generators.audit.rendered.MOST_WORKERS", 1
        )  # a process takes longer to start than to render these
        yield


@cache
def in_memory(recipe: SplitRecipe) -> split_file.Split:
    """A split whose images are nowhere, for checks that read records only."""
    planned = recipe.subsets()
    row_of = {scene: row for row, scene in enumerate(recipe.with_partners(planned))}
    return split_file.Split(
        path=Path("none.h5"),
        recipe=split_file.recorded(recipe) | recipe.measured(planned),
        identity="",
        vocabulary=Vocabulary.of(load_world(recipe.world)),
        shards=[],
        subsets={name: split_file.describe(name, scenes, row_of, recipe) for name, scenes in planned.items()},
        intact=True,
        recipe_version=split_file.recipe_version(recipe),
    )
