"""Rendered scenes as the files of COCO: a rehearsal without any outside file, through the same readers.

The files are what `python -m generators export` writes, under the names that COCO's have.
"""

from dataclasses import replace
from pathlib import Path

from envs.common.files import write_text
from envs.worlds import load_world
from generators.export.write import export
from generators.splits.recipe import SplitRecipe
from generators.storage.image_store import ImageStore
from studies.runs.rendering import make_splits

SEED = 1000  # above those of the study: other assignments of textures than its own scenes have
# COCO's parts by the subset of a split that takes their place.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}


def write_files(
    recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int
) -> tuple[Path, dict[str, Path]]:
    """Render and export; returns the data root, and the folders of images that aren't below it."""
    own = replace(recipe, seed=recipe.seed + SEED)
    images = ImageStore(store, load_world(recipe.world), resolution)
    split = make_splits(images, [own], workers)[own]
    root, exported = out / "rendered", out / "rendered" / "export"
    root.mkdir(parents=True, exist_ok=True)
    subsets = [subset for subset in PARTS if subset in {"train", *recipe.all_tests}]
    export(split, "coco", exported, subsets)
    for subset in subsets:
        content = (exported / f"{subset}.json").read_text()
        write_text(root / f"coco/annotations/captions_{PARTS[subset]}.json", content)
    return root, {f"coco/{PARTS[subset]}": exported / "images" for subset in subsets}
