"""Makes the split files of recipes, and renders what they need first."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.split_file import make_split


def make_splits(store: ImageStore, recipes: Iterable[SplitRecipe], workers: int) -> dict[SplitRecipe, Path]:
    """The split file of each recipe, after one rendering of all that the store lacks of their scenes."""
    from menagerie.envs.core.progress import progress_bars

    chosen: Sequence[SplitRecipe] = list(dict.fromkeys(recipes))
    scenes = list({scene for recipe in chosen for scene in recipe.scenes_to_render()})
    missing = len(store.missing(scenes))
    megabytes = missing * store.scene_bytes / 1e6
    print(f"{len(scenes)} scenes, {missing} of them to render: {megabytes:.0f} MB in {store.folder}", flush=True)
    with progress_bars("factors", "scenes") as progress:
        store.add(scenes, workers, progress=progress)
    return {recipe: make_split(store, recipe) for recipe in chosen}
