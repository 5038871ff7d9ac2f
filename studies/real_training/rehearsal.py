"""Rendered scenes as the files of COCO: a rehearsal without any outside file, through the same readers.

What `menagerie export` writes becomes JPEG files with COCO's numbers for names.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.reading import LARGEST_TEXT, read_json
from menagerie.envs.worlds import load_world
from menagerie.generators.export.write import export
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.runs.split_file import make_splits

SEED = 1000  # above those of the study: other assignments of textures than its own scenes have
# COCO's parts by the subset of a split that takes their place.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}
QUALITY = 95


def write_files(recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int) -> Path:
    """Render, export and rename; returns the data root. What is there already stays."""
    own = replace(recipe, seed=recipe.seed + SEED)
    images = ImageStore(store, load_world(recipe.world), resolution)
    split = make_splits(images, [own], workers)[own]
    root, exported = out / "rendered", out / "rendered" / "export"
    root.mkdir(parents=True, exist_ok=True)
    subsets = [subset for subset in PARTS if subset in {"train", *recipe.all_tests}]
    export(split, "coco", exported, subsets)
    first = 1
    for subset in subsets:
        content = read_json(exported / f"{subset}.json", most=LARGEST_TEXT)
        write_part(content, exported / "images", root / "coco", PARTS[subset], first)
        first += len(content["images"])
    return root


def write_part(content: Mapping[str, Any], images: Path, folder: Path, part: str, first: int) -> None:
    """One part of COCO, its photographs numbered from `first`: no two of COCO have one number."""
    annotations = folder / "annotations" / f"captions_{part}.json"
    if annotations.exists():  # which is written last
        return
    numbers = {its["id"]: first + place for place, its in enumerate(content["images"])}
    entries = []
    for its in content["images"]:
        name = f"{numbers[its['id']]:012d}.jpg"
        with whole_file(folder / part / name) as temporary, Image.open(images / its["file_name"]) as picture:
            picture.save(temporary, "JPEG", quality=QUALITY)
        entries.append({"id": numbers[its["id"]], "file_name": name})
    texts = [
        {"id": first + place, "image_id": numbers[its["image_id"]], "caption": its["caption"]}
        for place, its in enumerate(content["annotations"])
    ]
    write_text(annotations, json.dumps({"images": entries, "annotations": texts}))
