"""Rendered scenes as the files of COCO: a rehearsal without any outside file, through the same readers.

The files are what `python -m generators export` writes, under the names that COCO's have.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envs.common.files import write_text
from envs.worlds import load_world
from generators.export.write import export
from generators.splits.recipe import SplitRecipe
from generators.storage.image_store import ImageStore
from studies.runs.rendering import make_splits

SEED = 1000  # above those of the study: other assignments of textures than its own scenes have
# The folders of COCO by the subset of a split that takes their place.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}


def write_files(recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int) -> tuple[Path, dict[str, Path]]:
    """Render, export, and give the data root with the folders of images that aren't below it."""
    own = replace(recipe, seed=recipe.seed + SEED)
    images = ImageStore(store, load_world(recipe.world), resolution)
    split = make_splits(images, [own], workers)[own]
    folder, root = out / "rendered" / "export", out / "rendered"
    root.mkdir(parents=True, exist_ok=True)
    subsets = [part for part in PARTS if part in recipe.all_tests or part == "train"]
    export(split, "coco", folder, subsets)
    first = 1
    for part in subsets:
        content = json.loads((folder / f"{part}.json").read_text())
        write_text(root / f"coco/annotations/captions_{PARTS[part]}.json", json.dumps(numbered(content, part, first)))
        first += len(content["images"])
    return root, {f"coco/{PARTS[part]}": folder / "images" / part for part in subsets}


def numbered(content: Mapping[str, list[dict]], part: str, first: int) -> dict[str, list[dict]]:
    """A file of captions whose images are numbered from `first`, as no two images of COCO have one number."""
    shift = first - 1
    images = [its | {"id": its["id"] + shift, "file_name": its["file_name"].removeprefix(f"{part}/")} for its in content["images"]]
    keys = ("id", "image_id", "caption")
    texts = [{key: its[key] + shift if key != "caption" else its[key] for key in keys} for its in content["annotations"]]
    return {"images": images, "annotations": texts}
