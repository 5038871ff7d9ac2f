"""Small splits, made, damaged and audited; audits in these tests render each scene once."""

import os
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import h5py

from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit
from menagerie.generators.captions.contents import swapped_content, with_exchanged
from menagerie.generators.captions.templates import TEMPLATES, Caption, Template, content_of, write_caption
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe, recorded_fields
from menagerie.generators.storage import split_file
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.records import Records
from menagerie.generators.vocabulary import Vocabulary

RECIPE = BindingRecipe(world="tiny", pairs=0.75, hard_negatives=0.5, views=1, test_views=1, test_scenes=20)


@cache
def shared_atlas() -> Path:
    """The folder of the atlases of all tests; the name of an atlas says what decides its pixels."""
    return Path(os.environ.get("MENAGERIE_TESTS_ATLAS") or tempfile.mkdtemp(prefix="atlas"))


def lend_atlas(folder: Path) -> None:
    """Let commands that run in `folder` use the atlases of all tests."""
    lend(folder / "store")


def lend(root: Path) -> None:
    """Let split folders below `root` use the atlases of all tests."""
    shared_atlas().mkdir(exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "atlas").exists():
        (root / "atlas").symlink_to(shared_atlas(), target_is_directory=True)


def make_split(root: Path, recipe: SplitRecipe = RECIPE, resolution: int = 16) -> Path:
    """Write a split below `root`, with the atlases of all tests."""
    lend(root)
    return SplitFolder(root, load_world(recipe.world), resolution).make(recipe)


def failed(path: Path) -> list[str]:
    """The claims that fail in the audit."""
    return [finding.claim for finding in audit(path) if not finding.holds]


def overwrite(file: h5py.File, name: str, index: int, value: object) -> None:
    """Change a value in one row of a column."""
    data = file[name][:]
    data[index] = value.encode() if isinstance(value, str) else value
    file[name][:] = data


@cache
def in_memory(recipe: SplitRecipe) -> split_file.Split:
    """A split without a file, for checks of records."""
    return of_planned(recipe, recipe.subsets())


def of_planned(recipe: SplitRecipe, planned: Mapping[str, list[Scene]]) -> split_file.Split:
    """A split of these subsets without a file."""
    vocabulary = Vocabulary.of(load_world(recipe.world))
    written = recorded_fields(recipe) | recipe.measure(planned)
    tables = {name: make_columns(name, scenes, recipe, vocabulary) for name, scenes in planned.items()}
    return split_file.Split(
        path=Path("none.h5"),
        recipe=written,
        identity="",
        resolution=16,
        vocabulary=vocabulary,
        recipe_version=split_file.recipe_version(recipe),
        subsets={name: Records(written, vocabulary, *table) for name, table in tables.items()},
        digest="",
    )


def hard_negative(
    scene: Scene, seed: int, template: Template | str = "conjunction", exchanges: str = "texture"
) -> Caption | None:
    """Write the caption of the scene with the textures or slots (`exchanges`) of its objects exchanged, with the true
    caption's phrasing and bag of words. None unless the scene has two objects and that changes it; exchanging equal
    textures doesn't."""
    template = TEMPLATES[template] if isinstance(template, str) else template
    if len(scene.objects) != 2 or with_exchanged(scene, (0, 1), exchanges) == scene:
        return None
    swap = partial(with_exchanged, pair=(0, 1), field=exchanges)
    return write_caption(swapped_content(content_of(scene, seed, template), swap), template)
